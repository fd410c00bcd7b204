import type { ChannelSequence } from '#libs/kernel/event.ts';

import type { ChannelFrame } from './channel-frame.ts';

const MAX_FRAMES = 512;
const MAX_BYTES = 1024 * 1024;

/** The newest events of a channel, contiguous up to its head: who resumes from there needs no log. */
export class FrameRing {
  #frames: ChannelFrame[] = [];
  /** How many of `#frames` do not count any more: taken off the array now and then, not one by one. */
  #gone = 0;
  #bytes = 0;

  /** The next event; the caller sees to the sequence. */
  push(frame: ChannelFrame): void {
    this.#frames.push(frame);
    this.#bytes += frame.size;
    while (this.#count > MAX_FRAMES || (this.#bytes > MAX_BYTES && this.#count > 1)) {
      this.#bytes -= this.#frames[this.#gone]?.size ?? 0;
      this.#gone += 1;
    }
    if (this.#gone * 8 > this.#frames.length) {
      this.#frames = this.#frames.slice(this.#gone);
      this.#gone = 0;
    }
  }

  /**
   * The events from `after + 1` up to `head`, at most about `maxBytes` of them (one at least); none if `after`
   * is the head; null if they are not all held.
   */
  after(after: number, head: ChannelSequence, maxBytes: number): readonly ChannelFrame[] | null {
    const missing = head - after;
    if (missing <= 0) return [];
    if (missing > this.#count) return null;
    const first = this.#frames.length - missing;
    let end = first;
    for (let bytes = 0; end < this.#frames.length && (end === first || bytes < maxBytes); end++) {
      bytes += this.#frames[end]?.size ?? 0;
    }
    return this.#frames.slice(first, end);
  }

  get #count(): number {
    return this.#frames.length - this.#gone;
  }
}
