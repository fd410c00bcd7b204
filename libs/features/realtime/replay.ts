import { setTimeout as delay } from 'node:timers/promises';

import { backoffMs } from '#libs/platform/lifecycle/index.ts';
import type { Turnstile } from '#libs/platform/lifecycle/index.ts';

import { ChannelFrame, joinedFor } from './channel-frame.ts';
import type { ChannelListener } from './channel-listener.ts';
import type { LiveChannel } from './live-channel.ts';
import type { RealtimeMetrics } from './realtime.metrics.ts';
import type { ChannelLog } from './realtime.ports.ts';

export interface ReplaySource {
  readonly log: ChannelLog;
  /** So many read from the log at once: thousands who come back together must not all be in memory. */
  readonly turnstile: Turnstile;
  readonly metrics: RealtimeMetrics;
  warn(error: unknown, message: string): void;
}

/** Written at once to one listener, which then has to take it before there is more. */
const PART_BYTES = 256 * 1024;

/**
 * Brings a listener from its position to the channel's head, at the speed at which it reads, and hands it over
 * to the channel: from the newest frames where they reach back far enough, else from the log. Ends, too, when
 * the listener is closed. Never rejects: a log that is away is waited for.
 */
export async function replay(channel: LiveChannel, listener: ChannelListener, source: ReplaySource): Promise<void> {
  for (let failures = 0; listener.isOpen;) {
    const recent = channel.recentAfter(listener.position, PART_BYTES);
    // Nothing may come between the look at the head and the hand-over.
    if (recent?.length === 0) return channel.enter(listener);
    if (recent === null) {
      try {
        await replayFromLog(channel, listener, source);
        failures = 0;
      } catch (error) {
        failures += 1;
        source.warn(error, 'a replay has to wait for the log');
        await delay(backoffMs(failures), undefined, { ref: false });
      }
      continue;
    }
    write(listener, recent, source.metrics);
    await listener.drained();
  }
}

async function replayFromLog(channel: LiveChannel, listener: ChannelListener, source: ReplaySource): Promise<void> {
  const { organizationId, channelId } = channel;
  const pages = source.log.framesAfter(organizationId, channelId, channel.sequence(listener.position));
  const iterator = pages[Symbol.asyncIterator]();
  let some = false;
  try {
    while (listener.isOpen && channel.recentAfter(listener.position, 0) === null) {
      const next = await source.turnstile.pass(() => iterator.next());
      if (next.done === true) {
        if (some) return;
        throw new Error('the log has not what was published');
      }
      some = true;
      const frames = next.value.map((one) => new ChannelFrame(one.sequence, one.flags, one.json));
      // The log may be ahead of what was published: the channel must know all that its listeners know.
      channel.offer(frames);
      write(listener, frames, source.metrics);
      await listener.drained();
    }
  } finally {
    await iterator.return?.();
  }
}

function write(listener: ChannelListener, frames: readonly ChannelFrame[], metrics: RealtimeMetrics): void {
  const bytes = joinedFor(frames, listener.form, listener.include);
  const last = frames.at(-1)?.sequence ?? null;
  if (bytes === null || last === null) return;
  listener.write(bytes);
  listener.position = last;
  metrics.replayed(frames.length);
}
