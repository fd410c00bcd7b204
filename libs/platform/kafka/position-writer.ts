import type { GlobalPosition } from '#libs/kernel/event.ts';
import { pause } from '#libs/platform/lifecycle/index.ts';

export interface PositionWriterOptions {
  readonly write: (position: GlobalPosition) => Promise<void>;
  /** The position written last; null if it is unknown. */
  readonly written: GlobalPosition | null;
  readonly everyMs: number;
}

/** The position counts as settled when it has not changed for so long. */
const SETTLED_MS = 50;

/** Writes the newest position in the background: at intervals while it changes, and soon after its last change. */
export class PositionWriter {
  readonly #options: PositionWriterOptions;
  #newest: GlobalPosition | null;
  #written: GlobalPosition | null;
  #notedAtMs = 0;

  /** @param newest written at once, if it is not `written` */
  constructor(newest: GlobalPosition | null, options: PositionWriterOptions) {
    this.#options = options;
    this.#newest = newest;
    this.#written = options.written;
  }

  note(position: GlobalPosition): void {
    this.#newest = position;
    this.#notedAtMs = Date.now();
  }

  /** Runs until `signal` aborts. @throws the errors of `write` */
  async run(signal: AbortSignal): Promise<void> {
    for (let writtenAtMs = 0; !signal.aborted; await pause(SETTLED_MS, signal)) {
      const nowMs = Date.now();
      if (this.#newest === this.#written) continue;
      if (nowMs - writtenAtMs < this.#options.everyMs && nowMs - this.#notedAtMs < SETTLED_MS) continue;
      await this.flush();
      writtenAtMs = Date.now();
    }
  }

  /** Writes the newest position, unless it is written. */
  async flush(): Promise<void> {
    const position = this.#newest;
    if (position === null || position === this.#written) return;
    await this.#options.write(position);
    this.#written = position;
  }
}
