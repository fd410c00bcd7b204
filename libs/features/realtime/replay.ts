import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { backoffMs, pause } from '#libs/platform/lifecycle/index.ts';
import type { FairSemaphore } from '#libs/platform/lifecycle/index.ts';

import { ChannelFrame, joinedFor } from './channel-frame.ts';
import type { ChannelListener } from './channel-listener.ts';
import type { RealtimeMetrics } from './realtime.metrics.ts';
import type { ChannelLog } from './realtime.ports.ts';
import type { ReplayMemory } from './replay-memory.ts';

export interface ReplaySource {
  readonly log: ChannelLog;
  /** Page reads of the log: a storm of resumes must not keep commands from it, nor fill the memory. */
  readonly pageReads: FairSemaphore;
  readonly memory: ReplayMemory;
  readonly metrics: RealtimeMetrics;
  warn(error: unknown, message: string): void;
}

/** What a replay needs of the channel that it brings a listener to. */
interface ReplayedChannel {
  readonly organizationId: EntityId;
  readonly channelId: EntityId;
  sequence(value: number): ChannelSequence;
  recentAfter(position: number, maxBytes: number): readonly ChannelFrame[] | null;
  offer(frames: readonly ChannelFrame[]): unknown;
  enter(listener: ChannelListener): void;
}

/** Written at once to one listener, which then has to take it before there is more: from memory, and from the log. */
const PART_BYTES = 256 * 1024;
const PAGE_BYTES = 1024 * 1024;

/**
 * Brings a listener from its position to the channel's head, at the speed at which it reads, and hands it over
 * to the channel: from the newest frames where they reach back far enough, else from the log. Never rejects:
 * while the log is unavailable it retries.
 *
 * @param closed aborts when the listener is closed; that ends the replay, and cancels the read that it waits for
 */
export async function replay(
  channel: ReplayedChannel,
  listener: ChannelListener,
  source: ReplaySource,
  closed: AbortSignal,
): Promise<void> {
  for (let failures = 0; listener.isOpen;) {
    const recent = channel.recentAfter(listener.position, source.memory.partBytes(PART_BYTES));
    // Nothing may come between the look at the head and the hand-over.
    if (recent?.length === 0) return channel.enter(listener);
    if (recent === null) {
      try {
        await replayFromLog(channel, listener, source, closed);
        failures = 0;
      } catch (error) {
        if (closed.aborted) return;
        failures += 1;
        source.warn(error, 'a replay waits for the log');
        await pause(backoffMs(failures), closed);
      }
      continue;
    }
    await write(listener, recent, source);
  }
}

async function replayFromLog(
  channel: ReplayedChannel,
  listener: ChannelListener,
  source: ReplaySource,
  closed: AbortSignal,
): Promise<void> {
  const { organizationId, channelId } = channel;
  const pages = source.log.framesAfter(organizationId, channelId, channel.sequence(listener.position), {
    signal: closed,
    pageBytes: () => source.memory.partBytes(PAGE_BYTES),
  });
  const iterator = pages[Symbol.asyncIterator]();
  let some = false;
  try {
    while (listener.isOpen && channel.recentAfter(listener.position, 0) === null) {
      // Organizations take turns, page by page.
      const next = await source.pageReads.run(() => iterator.next(), { group: organizationId, signal: closed });
      if (next.done === true) {
        if (some) return;
        throw new Error('the log lacks events that were published');
      }
      some = true;
      const frames = next.value.map((one) => new ChannelFrame(one.sequence, one.flags, one.json));
      // The log may be ahead of what was published: the channel must know all that its listeners know.
      channel.offer(frames);
      await write(listener, frames, source);
    }
  } finally {
    await iterator.return?.();
  }
}

/** Resolves when the listener has taken what was written. */
async function write(
  listener: ChannelListener,
  frames: readonly ChannelFrame[],
  { memory, metrics }: ReplaySource,
): Promise<void> {
  const bytes = joinedFor(frames, listener.form, listener.include);
  const last = frames.at(-1)?.sequence ?? null;
  if (bytes === null || last === null) return;
  listener.write(bytes);
  listener.position = last;
  metrics.replayed(frames.length);
  await memory.hold(bytes.length, listener.drained());
}
