/**
 * A part of Parley that can run in a process of its own or beside others in `standalone`. `Platform` is
 * what it works with (clients of the stores, log, metrics); it owns none of that and closes none of it.
 */
export interface Role<Platform, Config> {
  readonly name: string;
  /** Resolves when the role does its work. What it started before it failed, it stopped again. */
  start(platform: Platform, config: Config): Promise<RunningRole>;
}

export interface RunningRole {
  /** Where it listens (`http://127.0.0.1:8080`), for a role that does. */
  readonly url?: string | undefined;
  /** Refuses new work, finishes what it has begun, and resolves. Called once. */
  stop(): Promise<void>;
}

/** The roles that `names` asks for, in the order in which `roles` lists them; all of them if it is empty. */
export function selectRoles<R extends { readonly name: string }>(roles: readonly R[], names: readonly string[]): R[] {
  return roles.filter(({ name }) => names.length === 0 || names.includes(name));
}

/** For what nobody waits for: ends a process that is run by `runProcess`, which says why. */
export function throwUncaught(error: unknown): void {
  setImmediate(() => {
    throw error;
  });
}

/** Parley cannot start for a reason that its operator can remove: told in one line, without a stack. */
export class StartRefusal extends Error {
  override readonly name = 'StartRefusal';
}
