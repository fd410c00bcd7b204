import { Failure } from './model.failures.ts';

export interface ModelLimits {
  /** From the call to the last part, with all retries. Default: 120,000. */
  readonly totalMs?: number;
  /** From the call to the first byte of an answer, with all retries. Default: 60,000. */
  readonly firstPartMs?: number;
  /** Between two bytes of an answer. Default: 30,000. */
  readonly idleMs?: number;
  /** Of a response, with its framing. Default: 32 MiB. */
  readonly maxBytes?: number;
  /** Requests for one call, besides those that leave out what the endpoint refused. Default: 4. */
  readonly maxAttempts?: number;
}

/** Aborts with a `Failure` when the answer, its first byte or its next byte is late, or when the caller aborts. */
export class Deadlines implements Disposable {
  readonly #abort = new AbortController();
  readonly #caller: AbortSignal;
  readonly #limits: Required<ModelLimits>;
  readonly #total: NodeJS.Timeout;
  readonly #firstAt: number;
  #next: NodeJS.Timeout | undefined;
  #nextAt = 0;
  /** When the timer fires. */
  #timerAt = Infinity;
  #lateness = 'the model did not begin to answer in time';

  constructor(limits: Required<ModelLimits>, caller: AbortSignal) {
    this.#limits = limits;
    this.#caller = caller;
    this.#total = setTimeout(() => this.#isLate('the model did not finish its answer in time'), limits.totalMs);
    this.#firstAt = performance.now() + limits.firstPartMs;
    this.#expectBytesBy(this.#firstAt);
    caller.addEventListener('abort', this.#onCaller, { once: true });
    if (caller.aborted) this.#onCaller();
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Until the next byte is late. */
  get remainingMs(): number {
    return this.#nextAt - performance.now();
  }

  /** Any byte counts: a model may write long arguments, or say that it still works. */
  onBytes(): void {
    this.#lateness = 'the model stopped in the middle of its answer';
    this.#expectBytesBy(performance.now() + this.#limits.idleMs);
  }

  /** Another request begins. */
  onAttempt(): void {
    if (this.#firstAt > this.#nextAt) this.#expectBytesBy(this.#firstAt);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#total);
    clearTimeout(this.#next);
    this.#caller.removeEventListener('abort', this.#onCaller);
  }

  readonly #onCaller = (): void => this.#abort.abort(new Failure('aborted', 'the call was cancelled'));

  /** A timer that fires too early is set again then: bytes arrive more often than timers should be set. */
  #expectBytesBy(at: number): void {
    this.#nextAt = at;
    if (at >= this.#timerAt) return;
    clearTimeout(this.#next);
    this.#timerAt = at;
    this.#next = setTimeout(this.#onTimer, Math.max(0, Math.ceil(at - performance.now())));
  }

  readonly #onTimer = (): void => {
    this.#timerAt = Infinity;
    if (this.remainingMs <= 0) this.#isLate(this.#lateness);
    else this.#expectBytesBy(this.#nextAt);
  };

  #isLate(message: string): void {
    this.#abort.abort(new Failure('timeout', message));
  }
}
