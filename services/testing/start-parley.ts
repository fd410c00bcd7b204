import { oldNodeRefusal } from '#services/node-version.ts';
import type { StartedParley, StartParleyOptions } from './in-process.ts';

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
