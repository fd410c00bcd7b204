import { setImmediate as immediate } from 'node:timers/promises';

import { storeUnavailable } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { FairSemaphore } from '#libs/platform/lifecycle/index.ts';
import type { TopicSubscriptions } from '#libs/platform/redis/index.ts';

import { LiveStream, type LiveStreamParts } from './live-stream.ts';
import { ReplayMemory } from './replay.ts';

/**
 * Sequences that the read models of channels have reached, in order of the channels; at most those of the log. Throws
 * `store_unavailable` faults.
 */
export type PublishedHeads = (
  channels: readonly { readonly organizationId: EntityId; readonly channelId: EntityId }[],
) => Promise<readonly number[]>;

export interface LiveLog {
  warn(fields: object, message: string): void;
}

export interface LiveStreamsOptions extends Pick<
  LiveStreamParts,
  'log' | 'values' | 'frames' | 'metrics' | 'onAccessChange'
> {
  readonly heads: PublishedHeads;
}

interface Known {
  readonly channel: LiveStream;
  readonly opening: Promise<boolean>;
  idleTicks: number;
}

/**
 * Concurrent reads of pages of the log, by all replays of the process. Decoding a page's events takes most of the time,
 * on the thread that commands need as well: more reads at once are no faster, and delay commands for longer.
 */
const MAX_PAGE_READS = 2;
/** How long a channel without subscribers stays open for clients that reconnect at once; in ticks, of a second. */
const MAX_IDLE_TICKS = 5;
const SWEEP_TICKS = 15;
const HEADS_PER_QUERY = 500;

/** The channels that have subscribers in this process: it subscribes to each topic once, for all of them. */
export class LiveStreams {
  readonly #known = new Map<string, Known>();
  readonly #parts: LiveStreamParts;
  readonly #heads: PublishedHeads;
  #ticks = 0;
  #isSweepDue = false;
  #isSweeping = false;
  #isClosed = false;

  constructor(
    { topics, log: logger }: { readonly topics: TopicSubscriptions; readonly log: LiveLog },
    { heads, ...parts }: LiveStreamsOptions,
  ) {
    this.#heads = heads;
    this.#parts = {
      ...parts,
      topics,
      pageReads: new FairSemaphore({ permits: MAX_PAGE_READS }),
      memory: new ReplayMemory(),
      warn: (error, message) => logger.warn({ err: error }, `realtime: ${message}`),
      onResubscribed: () => this.#sweepSoon(),
    };
  }

  get size(): number {
    return this.#known.size;
  }

  /** The channel if it is open already. */
  openOne(organizationId: EntityId, channelId: EntityId): LiveStream | null {
    const known = this.#known.get(nameOf(organizationId, channelId));
    return known !== undefined && known.channel.isOpen ? known.channel : null;
  }

  /**
   * Opens the channel; null if the organization has no such channel. It is closed again unless a subscriber joins within
   * a few seconds.
   *
   * @throws `Fault` `store_unavailable`
   */
  async open(organizationId: EntityId, channelId: EntityId): Promise<LiveStream | null> {
    if (this.#isClosed) throw storeUnavailable('redis');
    const name = nameOf(organizationId, channelId);
    let known = this.#known.get(name);
    if (known === undefined) {
      const channel = new LiveStream(organizationId, channelId, this.#parts);
      known = { channel, opening: channel.open(), idleTicks: 0 };
      this.#known.set(name, known);
      known.opening.then(
        (exists) => exists || this.#forget(name, channel),
        () => this.#forget(name, channel),
      );
    }
    known.idleTicks = 0;
    return (await known.opening) ? known.channel : null;
  }

  tick(): void {
    this.#ticks += 1;
    for (const [name, known] of this.#known) {
      if (known.channel.size > 0 || !known.channel.isOpen) known.idleTicks = 0;
      else if (++known.idleTicks > MAX_IDLE_TICKS) this.#forget(name, known.channel);
    }
    if (this.#ticks % SWEEP_TICKS === 0) this.#sweepSoon();
  }

  flush(): void {
    for (const { channel } of this.#known.values()) channel.flush();
  }

  close(): void {
    this.#isClosed = true;
    for (const [name, { channel }] of this.#known) this.#forget(name, channel);
  }

  #forget(name: string, channel: LiveStream): void {
    if (this.#known.get(name)?.channel === channel) this.#known.delete(name);
    channel.close();
  }

  #sweepSoon(): void {
    this.#isSweepDue = true;
    if (!this.#isSweeping) void this.#sweep();
  }

  /** Compares the channels with their read models: pub/sub may lose the last message before a silence. */
  async #sweep(): Promise<void> {
    this.#isSweeping = true;
    while (this.#isSweepDue) {
      // All topics are received again at the same time: one sweep covers them.
      await immediate();
      this.#isSweepDue = false;
      const channels = [...this.#known.values()].map(({ channel }) => channel).filter(({ isOpen }) => isOpen);
      try {
        for (let from = 0; from < channels.length; from += HEADS_PER_QUERY) {
          const some = channels.slice(from, from + HEADS_PER_QUERY);
          const heads = await this.#heads(some);
          for (const [index, channel] of some.entries()) {
            channel.announce(heads[index] ?? 0);
            channel.retryValues();
          }
        }
      } catch (error) {
        this.#parts.warn(error, 'channels could not be compared with their read models');
      }
    }
    this.#isSweeping = false;
  }
}

function nameOf(organizationId: EntityId, channelId: EntityId): string {
  return `${organizationId} ${channelId}`;
}
