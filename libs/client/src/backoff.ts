export const MAX_PAUSE_MS = 15_000;

export interface BackoffOptions {
  /** Upper bound of the first pause, in milliseconds. Default 250. */
  readonly firstMs?: number;
  /** Upper bound of every pause, in milliseconds, `Retry-After` included. Default 15,000. */
  readonly maxMs?: number;
}

/**
 * Pause before the `attempt`-th reconnection (from 1): random, from 0 to a bound that doubles, so that clients which lost
 * their server at the same time do not reconnect at the same time.
 *
 * @param random returns values from 0 to 1
 */
export function pauseMs(
  attempt: number,
  { firstMs = 250, maxMs = MAX_PAUSE_MS }: BackoffOptions = {},
  random: () => number = Math.random,
): number {
  return Math.round(random() * Math.min(maxMs, firstMs * 2 ** Math.min(attempt - 1, 30)));
}

/** Resolves after the time, or when the signal aborts; at once if it has. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    }
    signal?.addEventListener('abort', done);
  });
}
