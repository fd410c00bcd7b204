import { LRUCache } from 'lru-cache';
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
  /** In order of arrival: nothing reads entries, so the least recently used one is the oldest. */
  readonly #owners: LRUCache<LiveFrame, FrameOwner>;
  #evicted = 0;
  /** True while an owner drops a frame, and perhaps earlier ones with it. */
  #isEvicting = false;

  constructor(maxBytes = MAX_KEPT_BYTES) {
    this.#owners = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: (_owner, frame) => bytesOf(frame),
      disposeAfter: (owner, frame, reason) => {
        if (reason === 'evict') this.#evict(frame, owner);
      },
    });
  }

  /** Includes the objects of the frames, about. */
  get bytes(): number {
    return this.#owners.calculatedSize;
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
    if (bytesOf(frame) > this.#owners.maxSize) this.#evict(frame, owner);
  }

  delete(frame: LiveFrame): void {
    if (this.#owners.delete(frame) && this.#isEvicting) this.#evicted += 1;
  }

  #evict(frame: LiveFrame, owner: FrameOwner): void {
    this.#evicted += 1;
    // A deletion by the owner may make the cache call this for further frames.
    const wasEvicting = this.#isEvicting;
    this.#isEvicting = true;
    owner.evict(frame);
    this.#isEvicting = wasEvicting;
  }
}

function bytesOf({ bytes }: LiveFrame): number {
  return bytes + FRAME_OVERHEAD_BYTES;
}
