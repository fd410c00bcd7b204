/** @param root the folder that is set up; one process of all on this machine is at work in it at a time */
export function withSetUpLock(
  root: string,
  work: () => Promise<void> | void,
  options?: { readonly everyMs?: number },
): Promise<void>;
