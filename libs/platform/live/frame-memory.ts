import { withinMemory } from '#libs/platform/config/index.ts';
import type { LiveFrame } from './live-frame.ts';

/** Bytes of the frames that all channels of a process keep. The largest that one channel keeps alone is 5 MiB. */
export const MAX_KEPT_BYTES = withinMemory(128 * 1024 * 1024);
/** Memory of a frame beside its bytes: its objects, its entry here, and unused parts of its block. Measured: about 300 bytes. */
const FRAME_OVERHEAD_BYTES = 512;

interface FrameOwner {
  /** Drops the frame, and what is of no use without it; calls `delete` for each. */
  evict(frame: LiveFrame): void;
}

/**
 * The memory of the frames that the channels of a process keep, for replays or because an earlier event is missing.
 * Beyond the limit, the frames that arrived first are dropped, whichever channel has them: the log has them, and clients
 * that reconnect soon lack only the newest.
 */
export class FrameMemory {
  readonly #maxBytes: number;
  /** In order of arrival. */
  readonly #owners = new Map<LiveFrame, FrameOwner>();
  /** Kept between evictions: a new iterator would pass over all entries that were deleted before the oldest one. */
  #oldest = this.#owners.entries();
  #bytes = 0;
  #evicted = 0;

  constructor(maxBytes = MAX_KEPT_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** Includes the objects of the frames, about. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Number of frames that were dropped because of the limit since the last call. */
  takeEvicted(): number {
    const count = this.#evicted;
    this.#evicted = 0;
    return count;
  }

  /** May call `evict` of any owner, also for this frame. */
  add(frame: LiveFrame, owner: FrameOwner): void {
    this.#owners.set(frame, owner);
    this.#bytes += bytesOf(frame);
    while (this.#bytes > this.#maxBytes) this.#evictOldest();
  }

  delete(frame: LiveFrame): void {
    if (this.#owners.delete(frame)) this.#bytes -= bytesOf(frame);
  }

  #evictOldest(): void {
    let next = this.#oldest.next();
    if (next.done === true) {
      this.#oldest = this.#owners.entries();
      next = this.#oldest.next();
    }
    if (next.done === true) throw new Error('frames are counted that are not kept');
    const [frame, owner] = next.value;
    const before = this.#owners.size;
    owner.evict(frame);
    this.delete(frame);
    this.#evicted += before - this.#owners.size;
  }
}

function bytesOf(frame: LiveFrame): number {
  return frame.bytes + FRAME_OVERHEAD_BYTES;
}
