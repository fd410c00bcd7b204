import { StreamGone } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { backoffMs, pause, type FairSemaphore } from '#libs/platform/lifecycle/index.ts';

import { liveFrames, type LiveFrame } from './live-frame.ts';
import type { FrameSource } from './frame-source.ts';
import { CLOSE } from './close-codes.ts';
import type { LiveMetrics } from './live.metrics.ts';
import type { Subscriber } from './subscriber.ts';

export interface ReplaySource {
  /** Limits concurrent reads of the log: a storm of resumes must not block commands, nor fill the memory. */
  readonly pageReads: FairSemaphore;
  readonly memory: ReplayMemory;
  readonly metrics: LiveMetrics;
  warn(error: unknown, message: string): void;
}

export interface ReplayedStream {
  readonly log: FrameSource;
  readonly organizationId: EntityId;
  readonly id: EntityId;
  recentAfter(position: number, maxBytes: number): readonly LiveFrame[] | null;
  offer(frames: readonly LiveFrame[]): void;
  enter(subscriber: Subscriber): void;
}

/** Bytes written to a subscriber at once, from memory and from the log; it must read them before the next ones. */
const PART_BYTES = 256 * 1024;
const PAGE_BYTES = 1024 * 1024;
/** Limit of the bytes that replays have written and clients not read, in the process; beyond it, parts are small. */
const MAX_UNSENT_BYTES = 64 * 1024 * 1024;
const SMALL_PART_BYTES = 16 * 1024;

/**
 * The memory of replays. Thousands of slow clients that resume at once would each hold a whole part. Small parts bound
 * the memory, and each client still advances, however slowly the others read.
 */
export class ReplayMemory {
  #unsentBytes = 0;

  /** Size of the next part of a replay, where `usual` is its size while there is memory. */
  partBytes(usual: number): number {
    return this.#unsentBytes < MAX_UNSENT_BYTES ? usual : SMALL_PART_BYTES;
  }

  /** @param sent resolves when the bytes are sent, or the connection is closed */
  async hold(bytes: number, sent: Promise<void>): Promise<void> {
    this.#unsentBytes += bytes;
    try {
      await sent;
    } finally {
      this.#unsentBytes -= bytes;
    }
  }
}

/**
 * Sends a subscriber the events from its position to the stream's head, as fast as it reads, and makes it live: from
 * the recent frames if they reach back far enough, else from the log. Never rejects: retries while the log is
 * unavailable.
 *
 * @param closed aborts when the subscriber is closed; that ends the replay, and cancels the read that it waits for
 */
export async function replay(
  stream: ReplayedStream,
  subscriber: Subscriber,
  source: ReplaySource,
  closed: AbortSignal,
): Promise<void> {
  for (let failures = 0; subscriber.isOpen;) {
    const recent = stream.recentAfter(subscriber.position, source.memory.partBytes(PART_BYTES));
    // Synchronous, so that no event arrives between the two.
    if (recent?.length === 0) return stream.enter(subscriber);
    if (recent !== null) {
      await write(subscriber, recent, source);
      continue;
    }
    try {
      await replayFromLog(stream, subscriber, source, closed);
      failures = 0;
    } catch (error) {
      if (closed.aborted) return;
      if (error instanceof StreamGone) return subscriber.close(CLOSE.eventsGone, error.message);
      failures += 1;
      source.warn(error, 'a replay waits for the log');
      await pause(backoffMs(failures), closed);
    }
  }
}

async function replayFromLog(
  stream: ReplayedStream,
  subscriber: Subscriber,
  source: ReplaySource,
  closed: AbortSignal,
): Promise<void> {
  const { organizationId, id } = stream;
  const pages = stream.log.framesAfter(organizationId, id, subscriber.position, {
    signal: closed,
    pageBytes: () => source.memory.partBytes(PAGE_BYTES),
  });
  const iterator = pages[Symbol.asyncIterator]();
  let hasPages = false;
  try {
    while (subscriber.isOpen && stream.recentAfter(subscriber.position, 0) === null) {
      // Organizations take turns, page by page. A read of another subscriber may have brought these events meanwhile.
      const read = async () => (stream.recentAfter(subscriber.position, 0) === null ? iterator.next() : null);
      const next = await source.pageReads.run(read, { group: organizationId, signal: closed });
      if (next === null) return;
      if (next.done === true) {
        if (hasPages) return;
        throw new Error('the log lacks events that were published');
      }
      hasPages = true;
      const frames = liveFrames(next.value);
      // The log may be ahead of the topic: a stream's head must not be behind its subscribers.
      stream.offer(frames);
      await write(subscriber, frames, source);
    }
  } finally {
    await iterator.return?.();
  }
}

/** Resolves when the subscriber has read what was written. */
async function write(
  subscriber: Subscriber,
  frames: readonly LiveFrame[],
  { memory, metrics }: ReplaySource,
): Promise<void> {
  const last = frames.at(-1)?.sequence ?? null;
  if (last === null) return;
  const bytes = subscriber.encode(frames);
  subscriber.position = last;
  metrics.replayed.add({}, frames.length);
  if (bytes === null) return;
  subscriber.write(bytes);
  await memory.hold(bytes.length, subscriber.drained());
}
