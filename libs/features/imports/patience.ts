/** Waiting for stores that are away, so that an import outlives their restarts. */
import { Fault } from '#libs/kernel/faults.ts';
import { backoffMs, pause } from '#libs/platform/lifecycle/index.ts';

export interface PatienceOptions {
  /** Milliseconds that one piece of work is tried again before its fault is thrown. */
  readonly waitMs: number;
  /** Ends all waiting. */
  readonly signal: AbortSignal;
  /** Called once when nothing, and once when everything goes on again; not for each piece of work. */
  readonly onWaiting?: (reason: string) => void;
  readonly onBack?: () => void;
}

/** Repeats work that meets faults. It must be repeatable: what was written the first time is found the second. */
export class Patience {
  readonly #options: PatienceOptions;
  #waiting = 0;

  constructor(options: PatienceOptions) {
    this.#options = options;
  }

  /** @throws the last `Fault` once the time is over or the signal has come; other errors at once */
  async persist<T>(work: () => Promise<T>): Promise<T> {
    const { waitMs, signal, onWaiting, onBack } = this.#options;
    let sinceMs: number | null = null;
    for (let attempt = 1; ; attempt++) {
      try {
        const result = await work();
        if (sinceMs !== null && --this.#waiting === 0) onBack?.();
        return result;
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        if (sinceMs === null) {
          sinceMs = performance.now();
          if (++this.#waiting === 1) onWaiting?.(error.message);
        }
        if (signal.aborted || performance.now() - sinceMs >= waitMs) {
          this.#waiting -= 1;
          throw error;
        }
        await pause(backoffMs(attempt, { maxMs: 2_000 }), signal);
      }
    }
  }
}
