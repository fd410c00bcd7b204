/** What is used here of `node:stream`'s Readable; the client brings types of an older one. */
interface Source {
  readonly readableLength: number;
  read(): unknown;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  destroy(): unknown;
}

/**
 * Pulls from a read or a subscription whatever has arrived, many events at a time. What is not pulled
 * stays in the stream's bounded buffer, and once that is full the server is asked for no more.
 */
export class EventPull<T> {
  readonly #source: Source;
  readonly #cancel: () => Promise<unknown>;
  #ended = false;
  #failure: { readonly error: unknown } | undefined;
  #wake: (() => void) | undefined;
  /** What was read off the stream while somebody waited for more of it; taken first. */
  readonly #waiting: T[] = [];
  /** How much of it that somebody wants. */
  #wanted = 0;

  /** `cancel` tells the server to stop; destroying the stream alone would leave the call open. */
  constructor(source: Source, cancel: () => Promise<unknown>) {
    this.#source = source;
    this.#cancel = cancel;
    source.on('readable', () => {
      if (this.#wake !== undefined && this.#fill()) this.#wake();
    });
    // The client may emit further errors after the first; without a listener each would be uncaught.
    source.on('error', (error) => {
      this.#failure ??= { error };
      this.notify();
    });
    for (const event of ['end', 'close']) {
      source.on(event, () => {
        this.#ended = true;
        this.notify();
      });
    }
  }

  /** Nothing that arrived is left to take. */
  get drained(): boolean {
    return this.#waiting.length === 0 && this.#source.readableLength === 0;
  }

  /** All that there was has been taken. A stream that failed has not ended: `take` throws its error. */
  get ended(): boolean {
    return this.#ended && this.#failure === undefined && this.drained;
  }

  /** Up to `max` events, none if none is there. Errors: those of the stream, once it is drained. */
  take(max: number): T[] {
    const taken = this.#waiting.splice(0, max);
    while (taken.length < max) {
      const next = this.#source.read();
      if (next === null) break;
      taken.push(next as T);
    }
    if (taken.length === 0 && this.#failure) throw this.#failure.error;
    return taken;
  }

  /**
   * Resolves true when `atLeast` events are there, or something else than an event has happened; false
   * after `ms` milliseconds without it.
   */
  async wait(ms: number, atLeast = 1): Promise<boolean> {
    this.#wanted = atLeast;
    if (this.#fill() || this.#ended || this.#failure) return true;
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#wake = undefined;
        resolve(false);
      }, ms);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve(true);
      };
    });
  }

  /** Reads as much as is wanted, which also asks the stream for more. @returns whether so much is there */
  #fill(): boolean {
    while (this.#waiting.length < this.#wanted) {
      const next = this.#source.read();
      if (next === null) return false;
      this.#waiting.push(next as T);
    }
    return true;
  }

  /** Ends a `wait` from outside: something else than an event has happened. */
  notify(): void {
    this.#wake?.();
  }

  close(): void {
    void this.#cancel().catch(() => undefined);
    this.#source.destroy();
  }
}
