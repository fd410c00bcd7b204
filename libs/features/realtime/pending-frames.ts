import type { ChannelFrame } from './channel-frame.ts';

const MAX_FRAMES = 2_048;
const MAX_BYTES = 4 * 1024 * 1024;

/** Frames of events that wait for one before them. Beyond a bound all are forgotten: the log has them. */
export class PendingFrames {
  readonly #frames = new Map<number, ChannelFrame>();
  #bytes = 0;

  put(sequence: number, frame: ChannelFrame): void {
    if (this.#frames.has(sequence)) return;
    if (this.#frames.size >= MAX_FRAMES || this.#bytes + frame.size > MAX_BYTES) {
      this.#frames.clear();
      this.#bytes = 0;
    }
    this.#frames.set(sequence, frame);
    this.#bytes += frame.size;
  }

  take(sequence: number): ChannelFrame | undefined {
    const frame = this.#frames.get(sequence);
    if (frame === undefined) return undefined;
    this.#frames.delete(sequence);
    this.#bytes -= frame.size;
    return frame;
  }

  /** Those that have come by another way. */
  forgetUpTo(sequence: number): void {
    for (const known of this.#frames.keys()) if (known <= sequence) this.take(known);
  }
}
