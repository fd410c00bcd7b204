export interface RunningRole {
  /** Base URL of a role that listens, such as `http://127.0.0.1:8080`. */
  readonly url?: string | undefined;
  /** Refuses new work, finishes the work in progress, and resolves. Called once. */
  stop(): Promise<void>;
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
