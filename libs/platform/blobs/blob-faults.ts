import { Fault } from '#libs/kernel/faults.ts';

/** The storage returned other bytes than those of the blob. */
export class OtherContent extends Error {
  override readonly name = 'OtherContent';
}

/**
 * An event names a blob that the storage does not have: it is not that of the log, or not complete yet. A retry is safe.
 */
export function missingBlob(): Fault {
  return new Fault('store_unavailable', 'The store of files lacks this file', { retryAfterSeconds: 30 });
}

/** Maps the errors of the storage: a full disk, a missing permission, a server that does not answer, another content. */
export async function storage<Result>(operation: Promise<Result>): Promise<Result> {
  try {
    return await operation;
  } catch (error) {
    throw faultOf(error);
  }
}

export function faultOf(cause: unknown): unknown {
  if (cause instanceof Fault) return cause;
  const isOther = cause instanceof OtherContent;
  const what = isOther
    ? 'The store of files returned another content than that of this file'
    : 'The store of files is unavailable';
  return new Fault('store_unavailable', what, { cause, retryAfterSeconds: 2 });
}
