import { oldNodeRefusal } from '#services/node-version.ts';
import type { StartedParley, StartParleyOptions } from './in-process.ts';

/**
 * Starts all of Parley in this process: on a free port of the loopback interface, with its own event store (in this
 * thread) and its own Redis (`redis-server` on the PATH), both empty and in a temporary folder, which is removed when
 * Parley stops or the process dies. Several may run side by side; they share nothing.
 *
 * Resolves when Parley is ready. It logs nothing (unless `LOG_LEVEL` is set), has no rate limits, and installs no signal
 * handlers.
 *
 * @throws Error (rejects) that says what to do: no `redis-server`, invalid settings, a Node that is too old
 */
export async function startParley(options: StartParleyOptions = {}): Promise<StartedParley> {
  const refusal = oldNodeRefusal();
  if (refusal !== null)
    throw new Error(`${refusal}: run the tests on a newer Node, or Parley in a container (ParleyContainer)`);
  // Imported late: test files that do not start Parley do not load it, and an old Node reaches the error above.
  const { startInProcess } = await import('./in-process.ts');
  return startInProcess(options);
}
