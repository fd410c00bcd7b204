import { setTimeout as delay } from 'node:timers/promises';

export interface BackoffOptions {
  /** First pause, in milliseconds. Default 100. */
  readonly firstMs?: number;
  /** Longest pause, in milliseconds. Default 5,000. */
  readonly maxMs?: number;
}

/** Pause before the `attempt`-th repetition (from 1): doubling, with up to a fifth of jitter taken off. */
export function backoffMs(attempt: number, { firstMs = 100, maxMs = 5_000 }: BackoffOptions = {}): number {
  const full = Math.min(maxMs, firstMs * 2 ** Math.min(attempt - 1, 30));
  return Math.round(full * (1 - Math.random() / 5));
}

/** What `work` results in, or, once `signal` aborts, a rejection with its reason; the work is then left to itself. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Waits, but not longer than until `signal` aborts. Never rejects. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}
