/**
 * A part of Parley that runs in its own process, or with others in `standalone`. `Platform` holds the clients
 * of the stores, the log and the metrics; the role does not close them.
 */
export interface Role<Platform, Config> {
  readonly name: string;
  /** Resolves when the role is working. If it rejects, it has stopped everything that it had started. */
  start(platform: Platform, config: Config): Promise<RunningRole>;
}

export interface RunningRole {
  /** Base URL of a role that listens, such as `http://127.0.0.1:8080`. */
  readonly url?: string | undefined;
  /** Refuses new work, finishes the work in progress, and resolves. Called once. */
  stop(): Promise<void>;
}

/** The roles in `names`, in the order of `roles`; all roles if `names` is empty. */
export function selectRoles<R extends { readonly name: string }>(roles: readonly R[], names: readonly string[]): R[] {
  return roles.filter(({ name }) => names.length === 0 || names.includes(name));
}

/** Reports an error that no caller awaits: `runProcess` prints it and ends the process. */
export function throwUncaught(error: unknown): void {
  setImmediate(() => {
    throw error;
  });
}

/** Parley cannot start for a reason that the operator can remove: printed as one line, without a stack. */
export class StartRefusal extends Error {
  override readonly name = 'StartRefusal';
}
