import type { ChannelSequence } from '#libs/kernel/event.ts';

import { FRAME_FLAG } from './frames.ts';
import type { LiveFrame } from './live-frame.ts';
import type { FrameMemory } from './frame-memory.ts';

const MAX_RECENT = 512;
const MAX_RECENT_BYTES = 1024 * 1024;
const MAX_AHEAD = 2_048;
const MAX_AHEAD_BYTES = 4 * 1024 * 1024;

/**
 * Orders the events of a channel that this process receives, drops duplicates, and keeps the newest ones, contiguous up
 * to `head`, for replays. Events after a missing one are kept until it arrives. Both are limited, for each channel and for
 * all of the process together: events beyond a limit are dropped, because the log has them.
 */
export class EventBuffer {
  readonly #onNext: (frame: LiveFrame) => void;
  readonly #memory: FrameMemory;
  /** Frames by sequence: without a gap, up to the head. */
  readonly #recent = new Map<number, LiveFrame>();
  #recentBytes = 0;
  readonly #ahead = new Map<number, LiveFrame>();
  #aheadBytes = 0;
  #head = 0 as ChannelSequence;
  #isStarted = false;
  /** Sequence of the newest event that erased earlier frames. */
  #erasedUpTo = 0;
  /** The newest sequence that was announced. */
  #announced = 0;

  /** @param onNext called with each event, once and in order */
  constructor(memory: FrameMemory, onNext: (frame: LiveFrame) => void) {
    this.#memory = memory;
    this.#onNext = onNext;
  }

  get head(): ChannelSequence {
    return this.#head;
  }

  get hasGap(): boolean {
    return this.#isStarted && this.#head < this.#announced;
  }

  /** Sets the head: the sequence before the first event to accept, or 0. */
  start(head: number): void {
    this.#head = head as ChannelSequence;
    this.#isStarted = true;
    this.#takeAhead();
  }

  announce(sequence: number): void {
    if (sequence > this.#announced) this.#announced = sequence;
  }

  put(frame: LiveFrame): void {
    const { sequence } = frame;
    if (sequence === null || sequence <= this.#head) return;
    this.announce(sequence);
    if (!this.#isStarted || sequence !== this.#head + 1) return this.#putAhead(sequence, frame);
    this.#append(frame, sequence);
    if (this.#ahead.size > 0) this.#takeAhead();
  }

  /**
   * The events from `after + 1` up to the head, at most about `maxBytes` of them (one at least); none if `after` is the
   * head; null if they are not all kept.
   */
  after(after: number, maxBytes: number): readonly LiveFrame[] | null {
    const missing = this.#head - after;
    if (missing <= 0) return [];
    if (missing > this.#recent.size) return null;
    const frames: LiveFrame[] = [];
    for (let bytes = 0; frames.length < missing && (frames.length === 0 || bytes < maxBytes);) {
      const next = this.#recent.get(after + frames.length + 1);
      if (next === undefined) break;
      frames.push(next);
      bytes += next.bytes;
    }
    return frames;
  }

  /** Keeps events from the log that directly precede the kept ones, as many as the limits allow. @param frames ascending */
  extendBack(frames: readonly LiveFrame[]): void {
    for (const frame of frames.toReversed()) {
      if (frame.sequence !== this.#head - this.#recent.size) continue;
      // It may have been read before a later event erased its data.
      if (frame.sequence <= this.#erasedUpTo) return;
      if (this.#recent.size >= MAX_RECENT || this.#recentBytes + frame.bytes > MAX_RECENT_BYTES) return;
      this.#recent.set(frame.sequence, frame);
      this.#recentBytes += frame.bytes;
      // May drop the frame at once; those before it are then no neighbours of the kept ones.
      this.#memory.add(frame, this);
    }
  }

  /** Drops a frame whose memory others need, and the recent ones before it, which must stay contiguous. */
  evict(frame: LiveFrame): void {
    const { sequence } = frame;
    if (sequence === null) return;
    if (this.#ahead.get(sequence) === frame) {
      this.#removeAhead(sequence);
      return;
    }
    while (this.#recent.size > this.#head - sequence) this.#dropOldest();
  }

  /** Drops all frames. */
  clear(): void {
    this.#clearRecent();
    this.#clearAhead();
  }

  #append(frame: LiveFrame, sequence: ChannelSequence): void {
    if (frame.has(FRAME_FLAG.erases)) {
      this.#erasedUpTo = sequence;
      this.#clearRecent();
    }
    this.#head = sequence;
    this.#recent.set(sequence, frame);
    this.#recentBytes += frame.bytes;
    while (this.#recent.size > MAX_RECENT || (this.#recentBytes > MAX_RECENT_BYTES && this.#recent.size > 1))
      this.#dropOldest();
    this.#memory.add(frame, this);
    this.#onNext(frame);
  }

  #dropOldest(): void {
    const sequence = this.#head - this.#recent.size + 1;
    const oldest = this.#recent.get(sequence);
    if (oldest === undefined) return;
    this.#recent.delete(sequence);
    this.#recentBytes -= oldest.bytes;
    this.#memory.delete(oldest);
  }

  #clearRecent(): void {
    while (this.#recent.size > 0) this.#dropOldest();
  }

  #putAhead(sequence: number, frame: LiveFrame): void {
    if (this.#ahead.has(sequence)) return;
    if (this.#ahead.size >= MAX_AHEAD || this.#aheadBytes + frame.bytes > MAX_AHEAD_BYTES) this.#clearAhead();
    this.#ahead.set(sequence, frame);
    this.#aheadBytes += frame.bytes;
    this.#memory.add(frame, this);
  }

  #clearAhead(): void {
    for (const frame of this.#ahead.values()) this.#memory.delete(frame);
    this.#ahead.clear();
    this.#aheadBytes = 0;
  }

  /** Appends the kept events that follow the head, and drops those that the log has provided meanwhile. */
  #takeAhead(): void {
    for (const sequence of this.#ahead.keys()) if (sequence <= this.#head) this.#removeAhead(sequence);
    for (;;) {
      const sequence = (this.#head + 1) as ChannelSequence;
      const next = this.#removeAhead(sequence);
      if (next === undefined) return;
      this.#append(next, sequence);
    }
  }

  #removeAhead(sequence: number): LiveFrame | undefined {
    const frame = this.#ahead.get(sequence);
    if (frame === undefined) return undefined;
    this.#ahead.delete(sequence);
    this.#aheadBytes -= frame.bytes;
    this.#memory.delete(frame);
    return frame;
  }
}
