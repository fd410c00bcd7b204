import { Fault } from '#libs/kernel/faults.ts';
import { retry } from '#libs/platform/lifecycle/index.ts';

interface StoreRetryOptions {
  /** How long one piece of work is retried before its fault is thrown. */
  readonly waitMs: number;
  /** Ends all retries. */
  readonly signal: AbortSignal;
  /** Called when the first of the pieces of work begins to wait, and when the last of them has succeeded. */
  readonly onWaiting?: (reason: string) => void;
  readonly onBack?: () => void;
}

/** Repeats idempotent work that fails with a `Fault`, so that an import outlives a restart of the stores. */
export class StoreRetry {
  readonly #options: StoreRetryOptions;
  #waiting = 0;

  constructor(options: StoreRetryOptions) {
    this.#options = options;
  }

  /** @throws the last `Fault` when the time is over or the signal has aborted; other errors at once */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const { waitMs, signal, onWaiting, onBack } = this.#options;
    let sinceMs: number | null = null;
    const result = await retry(work, {
      maxMs: 2_000,
      signal,
      onFailure: (error) => {
        if (!(error instanceof Fault)) throw error;
        if (sinceMs === null) {
          sinceMs = performance.now();
          if (++this.#waiting === 1) onWaiting?.(error.message);
        }
        if (!signal.aborted && performance.now() - sinceMs < waitMs) return;
        this.#waiting -= 1;
        throw error;
      },
    });
    if (sinceMs !== null && --this.#waiting === 0) onBack?.();
    return result;
  }
}
