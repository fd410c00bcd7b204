import { pause } from '#libs/platform/lifecycle/index.ts';

export interface IntervalWriterOptions {
  /** Resolves false if the value has to be written again. */
  readonly write: () => Promise<boolean>;
  readonly everyMs: number;
}

/** A value counts as settled when it has not changed for so long. */
const SETTLED_MS = 50;

/** Writes a value in the background: at intervals while it changes, and soon after its last change. */
export class IntervalWriter {
  readonly #options: IntervalWriterOptions;
  /** Number of changes, and how many of them are written. */
  #changes = 0;
  #written = 0;
  #changedAtMs = 0;

  constructor(options: IntervalWriterOptions) {
    this.#options = options;
  }

  changed(): void {
    this.#changes++;
    this.#changedAtMs = Date.now();
  }

  /** Runs until `signal` aborts. @throws the errors of `write` */
  async run(signal: AbortSignal): Promise<void> {
    for (let writtenAtMs = 0; !signal.aborted; await pause(SETTLED_MS, signal)) {
      const nowMs = Date.now();
      if (this.#changes === this.#written) continue;
      if (nowMs - writtenAtMs < this.#options.everyMs && nowMs - this.#changedAtMs < SETTLED_MS) continue;
      await this.flush();
      writtenAtMs = Date.now();
    }
  }

  /** Writes the value, unless it is written. */
  async flush(): Promise<void> {
    const changes = this.#changes;
    if (changes === this.#written) return;
    if (await this.#options.write()) this.#written = changes;
  }
}
