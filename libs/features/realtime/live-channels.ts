import { storeUnavailable } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { FairSemaphore } from '#libs/platform/lifecycle/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import { LiveChannel } from './live-channel.ts';
import type { LiveChannelParts } from './live-channel.ts';
import type { RealtimeMetrics } from './realtime.metrics.ts';
import type { ChannelLog, LiveValues, PublishedHeads } from './realtime.ports.ts';
import { ReplayMemory } from './replay-memory.ts';

export interface LiveChannelsOptions {
  readonly log: ChannelLog;
  readonly values: LiveValues;
  readonly heads: PublishedHeads;
  readonly metrics: RealtimeMetrics;
  onAccessChange(channel: LiveChannel): void;
}

interface Known {
  readonly channel: LiveChannel;
  readonly opening: Promise<boolean>;
  /** Ticks for which nobody has listened. */
  idle: number;
}

/**
 * Page reads of the log at once, by all replays of the process. Decoding the events of one page is what takes the
 * time, on the one thread that commands need as well: more at once are no faster, and delay commands for longer.
 */
const MAX_PAGE_READS = 2;
/** A channel that nobody listens to is kept for those who come back at once. In ticks, of a second. */
const IDLE_TICKS = 5;
const SWEEP_TICKS = 15;
const HEADS_AT_ONCE = 500;

/** The channels that somebody in this process listens to: each is subscribed to once, for all of them. */
export class LiveChannels {
  readonly #known = new Map<string, Known>();
  readonly #parts: LiveChannelParts;
  readonly #heads: PublishedHeads;
  readonly #warn: (error: unknown, message: string) => void;
  #ticks = 0;
  #sweeping = false;
  #sweepAgain = false;
  #sweepSoon: NodeJS.Immediate | undefined;
  #closed = false;

  constructor(platform: Pick<Platform, 'topics' | 'log'>, options: LiveChannelsOptions) {
    const { log, values, heads, metrics } = options;
    this.#heads = heads;
    this.#warn = (error, message) => platform.log.warn({ err: error }, `realtime: ${message}`);
    this.#parts = {
      topics: platform.topics,
      log,
      values,
      metrics,
      pageReads: new FairSemaphore({ permits: MAX_PAGE_READS }),
      memory: new ReplayMemory(),
      warn: this.#warn,
      onHearingAgain: () => this.#sweepAtOnce(),
      onAccessChange: (channel) => options.onAccessChange(channel),
    };
  }

  get size(): number {
    return this.#known.size;
  }

  /** Whether it is known here, and open. */
  openOne(organizationId: EntityId, channelId: EntityId): LiveChannel | null {
    const known = this.#known.get(nameOf(organizationId, channelId));
    return known !== undefined && known.channel.isOpen ? known.channel : null;
  }

  /**
   * The channel, heard from now on; null if the organization has no such channel. Whoever does not join it
   * within a few seconds loses it.
   *
   * @throws `Fault` `store_unavailable`
   */
  async open(organizationId: EntityId, channelId: EntityId): Promise<LiveChannel | null> {
    if (this.#closed) throw storeUnavailable('redis');
    const name = nameOf(organizationId, channelId);
    let known = this.#known.get(name);
    if (known === undefined) {
      const channel = new LiveChannel(organizationId, channelId, this.#parts);
      known = { channel, opening: channel.open(), idle: 0 };
      this.#known.set(name, known);
      known.opening.then(
        (exists) => exists || this.#forget(name, channel),
        () => this.#forget(name, channel),
      );
    }
    known.idle = 0;
    return (await known.opening) ? known.channel : null;
  }

  /** Every second. */
  tick(): void {
    this.#ticks += 1;
    for (const [name, known] of this.#known) {
      if (known.channel.size > 0 || !known.channel.isOpen) known.idle = 0;
      else if (++known.idle > IDLE_TICKS) this.#forget(name, known.channel);
    }
    if (this.#ticks % SWEEP_TICKS === 0) void this.#sweep();
  }

  /** Writes all that is due, at once. */
  flush(): void {
    for (const { channel } of this.#known.values()) channel.flush();
  }

  close(): void {
    this.#closed = true;
    clearImmediate(this.#sweepSoon);
    for (const [name, { channel }] of this.#known) this.#forget(name, channel);
  }

  #forget(name: string, channel: LiveChannel): void {
    if (this.#known.get(name)?.channel === channel) this.#known.delete(name);
    channel.close();
  }

  /** All topics are heard again together: one look for all of them. */
  #sweepAtOnce(): void {
    this.#sweepSoon ??= setImmediate(() => {
      this.#sweepSoon = undefined;
      void this.#sweep();
    });
  }

  /** Pub/sub may lose the last message before a silence: whether there is more is asked now and then. */
  async #sweep(): Promise<void> {
    // What the sweep that runs has asked already may have changed since.
    if (this.#sweeping) return void (this.#sweepAgain = true);
    this.#sweeping = true;
    const channels = [...this.#known.values()].map(({ channel }) => channel).filter(({ isOpen }) => isOpen);
    try {
      for (let from = 0; from < channels.length; from += HEADS_AT_ONCE) {
        const some = channels.slice(from, from + HEADS_AT_ONCE);
        const heads = await this.#heads.heads(some);
        for (const [index, channel] of some.entries()) {
          channel.hearOf(heads[index] ?? 0);
          channel.retryValues();
        }
      }
    } catch (error) {
      this.#warn(error, 'channels could not be compared with their read models');
    } finally {
      this.#sweeping = false;
      if (this.#sweepAgain && !this.#closed) this.#sweepAtOnce();
      this.#sweepAgain = false;
    }
  }
}

function nameOf(organizationId: EntityId, channelId: EntityId): string {
  return `${organizationId} ${channelId}`;
}
