import { Failure } from './model.failures.ts';

export interface ModelLimits {
  /** From the call to the last part, with all retries. Default: 120,000. */
  readonly totalMs?: number;
  /** From the call to the first part, with all retries. Default: 60,000. */
  readonly firstPartMs?: number;
  /** Between two parts. Default: 30,000. */
  readonly idleMs?: number;
  /** Of a response, with its framing. Default: 32 MiB. */
  readonly maxBytes?: number;
  /** Requests for one call. Default: 4. */
  readonly maxAttempts?: number;
}

/** Aborts with a `Failure` when the answer, its first part or its next part is late, or when the caller aborts. */
export class Deadlines implements Disposable {
  readonly #abort = new AbortController();
  readonly #caller: AbortSignal;
  readonly #limits: Required<ModelLimits>;
  readonly #total: NodeJS.Timeout;
  #next: NodeJS.Timeout;
  #nextAt: number;

  constructor(limits: Required<ModelLimits>, caller: AbortSignal) {
    this.#limits = limits;
    this.#caller = caller;
    this.#total = this.#after(limits.totalMs, 'the model did not finish its answer in time');
    this.#next = this.#after(limits.firstPartMs, 'the model did not begin to answer in time');
    this.#nextAt = performance.now() + limits.firstPartMs;
    caller.addEventListener('abort', this.#onCaller, { once: true });
    if (caller.aborted) this.#onCaller();
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Until the next part is late. */
  get remainingMs(): number {
    return this.#nextAt - performance.now();
  }

  onPart(): void {
    clearTimeout(this.#next);
    this.#next = this.#after(this.#limits.idleMs, 'the model stopped in the middle of its answer');
    this.#nextAt = performance.now() + this.#limits.idleMs;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#total);
    clearTimeout(this.#next);
    this.#caller.removeEventListener('abort', this.#onCaller);
    // Ends the request of a consumer that has stopped reading.
    this.#abort.abort();
  }

  readonly #onCaller = (): void => this.#abort.abort(new Failure('aborted', 'the call was cancelled'));

  #after(ms: number, message: string): NodeJS.Timeout {
    return setTimeout(() => this.#abort.abort(new Failure('timeout', message)), ms);
  }
}
