import { oldNodeRefusal } from '#services/node-version.ts';
import type { VariableName } from '#libs/platform/config/index.ts';
import type { TestParley } from './test-parley.ts';

export interface StartParleyOptions {
  /**
   * Any variable of the configuration. `EVENTSTORE_URL` and `REDIS_URL` name stores that run already: they are used
   * with what is in them, and nothing is removed. Without them Parley brings empty ones. What the environment of the
   * test says plays no part.
   */
  readonly settings?: Readonly<Partial<Record<VariableName, string>>>;
}

/** A Parley that runs in this process, for tests. Its `apiKey` may do everything. */
export interface StartedParley extends TestParley {
  /**
   * Ends it and removes what it has kept; nothing of it is left in this process. Later calls wait for the first.
   *
   * @throws Error (rejects) that names the parts that did not stop within `STOP_TIMEOUT_MS`
   */
  stop(): Promise<void>;
  /** The same, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts a whole Parley in this process: on a free port of the loopback interface, with an event store in this
 * thread and a Redis (`redis-server` of the PATH) of its own, both empty and in a temporary folder, which goes when
 * it is stopped, and also when the process dies. Several may run side by side; they share nothing.
 *
 * Resolves when everything can be called. It logs nothing (`LOG_LEVEL` changes that), has no rate limits, and leaves
 * signals and the end of the process to the test.
 *
 * @throws Error (rejects) that says what to do: no `redis-server`, settings that are wrong, a Node that is too old
 */
export async function startParley(options: StartParleyOptions = {}): Promise<StartedParley> {
  const refusal = oldNodeRefusal();
  if (refusal !== null)
    throw new Error(`${refusal}: run the tests on a newer Node, or Parley in a container (ParleyContainer)`);
  // Only now: where Parley is not started, its tests do not load it, and an old Node gets to the line above.
  const { startInProcess } = await import('./in-process.ts');
  return startInProcess(options);
}
