import { setTimeout as delay } from 'node:timers/promises';

export interface BackoffOptions {
  /** First pause, in milliseconds. Default 100. */
  readonly firstMs?: number;
  /** Longest pause, in milliseconds. Default 5,000. */
  readonly maxMs?: number;
}

export interface RetryOptions extends BackoffOptions {
  /** Ends the retries: the promise then rejects with the error of the last attempt. */
  readonly signal?: AbortSignal | undefined;
  /** Called after each failed attempt, before the pause. If it throws, there is no further attempt. */
  onFailure?(error: unknown, failures: number): void;
}

/** Repeats `work` with exponential backoff until it succeeds. @throws what `onFailure` throws; see `signal` */
export async function retry<T>(work: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { signal, onFailure } = options;
  for (let failures = 1; ; failures++) {
    try {
      return await work();
    } catch (error) {
      onFailure?.(error, failures);
      await pause(backoffMs(failures, options), signal);
      if (signal?.aborted) throw error;
    }
  }
}

/** Pause before the `attempt`-th retry (from 1): doubles each time, less up to a fifth of jitter. */
export function backoffMs(attempt: number, { firstMs = 100, maxMs = 5_000 }: BackoffOptions = {}): number {
  const full = Math.min(maxMs, firstMs * 2 ** Math.min(attempt - 1, 30));
  return Math.round(full * (1 - Math.random() / 5));
}

/** Waits for `ms` milliseconds, or until `signal` aborts. Never rejects. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await delay(ms, undefined, signal && { signal }).catch(() => undefined);
}

/** The result of `work`, or, once `signal` aborts, a rejection with its reason. The work itself is not stopped. */
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

/**
 * Runs `work` with a signal that aborts with `signal`, or with a `TimeoutError` after `ms` milliseconds, while the work
 * runs. Unlike `AbortSignal.any` with `AbortSignal.timeout`, it leaves nothing behind: those stay until the time is up.
 */
export async function withTimeLimit<T>(
  ms: number,
  signal: AbortSignal,
  work: (limited: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  const onAbort = (): void => limit.abort(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  const timer = setTimeout(() => limit.abort(new DOMException(`longer than ${ms} ms`, 'TimeoutError')), ms);
  try {
    return await work(limit.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}

/** Waits until `work` has settled, at most `ms` milliseconds. Never rejects. */
export async function settledWithin(ms: number, work: Promise<unknown>): Promise<void> {
  await within(ms, work, () => new Error('not settled in time')).catch(() => undefined);
}

/** The result of `work`, or a rejection with `onTimeout()` after `ms` milliseconds. The work itself is not stopped. */
export async function within<T>(ms: number, work: Promise<T>, onTimeout: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(onTimeout()), ms);
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
