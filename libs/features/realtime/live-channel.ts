import { setTimeout as delay } from 'node:timers/promises';

import type { ChannelSequence } from '#libs/kernel/event.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { backoffMs } from '#libs/platform/lifecycle/index.ts';
import { decodeLiveMessage, liveTopic } from '#libs/platform/live/index.ts';
import type { TopicSubscription, TopicSubscriptions } from '#libs/platform/redis/index.ts';

import { ChannelFrame, frameOf } from './channel-frame.ts';
import type { ChannelListener } from './channel-listener.ts';
import { FanOut } from './fan-out.ts';
import { FrameRing } from './frame-ring.ts';
import { PendingFrames } from './pending-frames.ts';
import { CLOSE } from './protocol.ts';
import type { LiveValues } from './realtime.ports.ts';
import { replay } from './replay.ts';
import type { ReplaySource } from './replay.ts';
import { ValueCatchUp } from './value-catch-up.ts';

export interface LiveChannelParts extends ReplaySource {
  readonly topics: TopicSubscriptions;
  readonly values: LiveValues;
  /** The topic is heard again after it was not: something may have been missed. */
  onHearingAgain(): void;
  /** An event has changed who may listen. */
  onAccessChange(channel: LiveChannel): void;
}

const LISTENING_WAIT_MS = 5_000;
/** What comes out of order comes a moment later, mostly. */
const GRACE_MS = 20;
/** While a hole is filled, listeners with more unsent are waited for, though not for long. */
const BUSY_BYTES = 256 * 1024;
const BUSY_WAIT_MS = 1_000;

/**
 * A channel as this process hears it: contiguous, whatever pub/sub loses, doubles or reorders. Holds the newest
 * events, and knows who listens.
 *
 * Guarantees: a listener is written every event behind its position, once, in order, and is live from the event
 * on at which its replay ended. What is missing comes from the log; nothing is passed over.
 */
export class LiveChannel {
  readonly organizationId: EntityId;
  readonly channelId: EntityId;
  readonly #parts: LiveChannelParts;
  readonly #subscription: TopicSubscription;
  readonly #listening = Promise.withResolvers<void>();
  readonly #ring = new FrameRing();
  readonly #fanOut: FanOut;
  readonly #values: ValueCatchUp;
  /** Listeners that are not live yet, each with what ends its replay. */
  readonly #arriving = new Map<ChannelListener, AbortController>();
  readonly #pending = new PendingFrames();
  #head = 0 as ChannelSequence;
  /** The newest sequence that was heard of. */
  #known = 0;
  /** From then on events can be put in their places. */
  #hasHead = false;
  #opened = false;
  /** While it was being opened, the topic was lost for a moment: what was told then is in neither of the two. */
  #interrupted = false;
  #closed = false;
  #archived = false;
  #fillTimer: NodeJS.Timeout | undefined;
  #filling = false;
  #fillFailures = 0;

  constructor(organizationId: EntityId, channelId: EntityId, parts: LiveChannelParts) {
    this.organizationId = organizationId;
    this.channelId = channelId;
    this.#parts = parts;
    this.#values = new ValueCatchUp({
      current: () => parts.values.current(organizationId, channelId),
      head: () => this.#head,
      onFailure: (error) => parts.warn(error, 'current values could not be read'),
    });
    this.#fanOut = new FanOut(parts.metrics, {
      onSlowForValues: (listener) => this.#values.afterDraining(listener),
      onArchived: (listeners) => this.#dismiss(listeners),
      onAccessChange: () => parts.onAccessChange(this),
    });
    this.#subscription = parts.topics.subscribe(liveTopic(organizationId, channelId), {
      onMessage: (message) => this.#hear(message),
      onListening: () => this.#onListening(),
      onDeaf: () => void (this.#interrupted ||= !this.#opened),
    });
  }

  /**
   * First the topic, then the log's head: what is appended between the two is heard.
   *
   * @returns false if the organization has no such channel
   * @throws `Fault` `store_unavailable`
   */
  async open(): Promise<boolean> {
    await this.#awaitListening();
    const { log } = this.#parts;
    const head = await log.head(this.organizationId, this.channelId);
    if (head === null) return false;
    this.#head = this.sequence(head - 1);
    this.#known = Math.max(this.#known, head);
    this.#hasHead = true;
    // The newest event says whether the channel is archived.
    for await (const page of log.framesAfter(this.organizationId, this.channelId, this.#head)) this.offer(made(page));
    this.#takePending();
    if (this.#head < this.#known) this.#fillSoon();
    this.#opened = true;
    if (this.#interrupted) this.#parts.onHearingAgain();
    return true;
  }

  async #awaitListening(): Promise<void> {
    const abort = new AbortController();
    const late = delay(LISTENING_WAIT_MS, undefined, { signal: abort.signal }).then(() => {
      throw storeUnavailable('redis');
    });
    late.catch(() => undefined);
    await Promise.race([this.#listening.promise, late]).finally(() => abort.abort());
  }

  /** Until then nobody can join: the opening may still fail, and nothing would ever be heard here. */
  get isOpen(): boolean {
    return this.#opened && !this.#closed;
  }

  get head(): ChannelSequence {
    return this.#head;
  }

  get isArchived(): boolean {
    return this.#archived;
  }

  /** How many listen, live or on their way there. */
  get size(): number {
    return this.#arriving.size + this.#fanOut.size;
  }

  /** All who listen. */
  members(): readonly ChannelListener[] {
    return [...this.#arriving.keys(), ...this.#fanOut.all()];
  }

  /** A number that is known to be a sequence of this channel, or 0. */
  sequence(value: number): ChannelSequence {
    return value as ChannelSequence;
  }

  /** Stays open for a listener that has yet to say from where on it wants the events. */
  keepFor(listener: ChannelListener): void {
    this.#arriving.set(listener, new AbortController());
  }

  /** Begins with a listener at its position, which must not be beyond the head. */
  join(listener: ChannelListener): void {
    const closed = new AbortController();
    this.#arriving.set(listener, closed);
    void replay(this, listener, this.#parts, closed.signal);
  }

  leave(listener: ChannelListener): void {
    this.#arriving.get(listener)?.abort();
    this.#arriving.delete(listener);
    this.#fanOut.remove(listener);
  }

  /** For a replay that has come to the head: what is due to the others is written first, so that nothing is doubled. */
  enter(listener: ChannelListener): void {
    if (!this.#arriving.delete(listener)) return;
    this.#fanOut.flush();
    this.#fanOut.add(listener);
    listener.caughtUp(this.#head);
    if (this.#archived) this.#dismiss([listener]);
    else this.#values.request(listener);
  }

  /** See `FrameRing.after`. */
  recentAfter(position: number, maxBytes: number): readonly ChannelFrame[] | null {
    return this.#ring.after(position, this.#head, maxBytes);
  }

  /**
   * Whether the channel has come to a sequence that somebody claims to have seen, be it by another node.
   *
   * @throws `Fault` `store_unavailable`
   */
  async reaches(sequence: number): Promise<boolean> {
    if (sequence <= this.#head) return true;
    const { log } = this.#parts;
    const head = await log.head(this.organizationId, this.channelId);
    if (head === null || head < sequence) return false;
    for await (const page of log.framesAfter(this.organizationId, this.channelId, this.#head)) this.offer(made(page));
    return sequence <= this.#head;
  }

  /** Events out of the log: those that are next are taken, and told to the live ones. @returns how many were */
  offer(frames: readonly ChannelFrame[]): number {
    const before = this.#head;
    for (const frame of frames) this.#accept(frame);
    return this.#head - before;
  }

  /** The channel has come to this sequence, somebody says: if it is news, what lies between is missing. */
  hearOf(sequence: number): void {
    if (sequence <= this.#known && sequence <= this.#head) return;
    this.#known = Math.max(this.#known, sequence);
    if (this.#hasHead && this.#head < this.#known) this.#fillSoon();
  }

  /** Asks again for values that could not be read before. */
  retryValues(): void {
    for (const listener of this.#fanOut.all()) if (listener.lacksValues) this.#values.request(listener);
  }

  /** Writes what is due, at once. */
  flush(): void {
    this.#fanOut.flush();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#fillTimer);
    this.#subscription.stop();
  }

  #onListening(): void {
    this.#listening.resolve();
    if (!this.#opened) return;
    this.#parts.onHearingAgain();
    for (const listener of this.#fanOut.all()) this.#values.request(listener);
  }

  #hear(message: Buffer): void {
    for (const item of decodeLiveMessage(message)) {
      if (item.kind === 'head') this.hearOf(item.sequence);
      else if (item.kind === 'event') {
        if (item.sequence > this.#head) this.#accept(frameOf(item));
      } else if (this.#fanOut.size > 0) this.#hearValue(frameOf(item));
    }
  }

  #hearValue(frame: ChannelFrame): void {
    this.#values.observe(frame);
    this.#fanOut.push(frame);
  }

  #accept(frame: ChannelFrame): void {
    const { sequence } = frame;
    if (sequence === null || sequence <= this.#head) return;
    if (this.#hasHead && sequence === this.#head + 1) {
      this.#append(frame, sequence);
      this.#takePending();
      return;
    }
    this.#pending.put(sequence, frame);
    this.hearOf(sequence);
  }

  #takePending(): void {
    this.#pending.forgetUpTo(this.#head);
    for (;;) {
      const next = this.#pending.take(this.#head + 1);
      if (next === undefined) return;
      this.#append(next, this.sequence(this.#head + 1));
    }
  }

  #append(frame: ChannelFrame, sequence: ChannelSequence): void {
    this.#head = sequence;
    this.#ring.push(frame);
    this.#archived ||= frame.archives;
    this.#fanOut.push(frame);
  }

  #fillSoon(pauseMs = GRACE_MS): void {
    if (this.#closed || this.#filling) return;
    this.#fillTimer ??= setTimeout(() => {
      this.#fillTimer = undefined;
      if (this.#head < this.#known) void this.#fill();
    }, pauseMs);
  }

  /** Reads what is missing from the log, and goes on doing so until it is there. */
  async #fill(): Promise<void> {
    this.#filling = true;
    let filled = 0;
    try {
      for await (const page of this.#parts.log.framesAfter(this.organizationId, this.channelId, this.#head)) {
        filled += this.offer(made(page));
        this.flush();
        await this.#awaitBusyOnes();
        if (this.#closed) return;
      }
    } catch (error) {
      this.#parts.warn(error, 'missed events could not be read yet');
    } finally {
      this.#filling = false;
      if (filled > 0) this.#parts.metrics.filled(filled);
    }
    this.#fillFailures = filled > 0 ? 0 : this.#fillFailures + 1;
    if (this.#head < this.#known) this.#fillSoon(backoffMs(this.#fillFailures + 1));
  }

  /** A long hole must not make everybody slow who reads at a usual speed. */
  async #awaitBusyOnes(): Promise<void> {
    const busy = this.#fanOut.withUnsent(BUSY_BYTES);
    if (busy.length === 0) return;
    const abort = new AbortController();
    const longEnough = delay(BUSY_WAIT_MS, undefined, { signal: abort.signal, ref: false }).catch(() => undefined);
    await Promise.race([Promise.all(busy.map((listener) => listener.drained())), longEnough]);
    abort.abort();
  }

  #dismiss(listeners: readonly ChannelListener[]): void {
    for (const listener of listeners) listener.close(CLOSE.channelGone, 'The channel is archived');
  }
}

function made(page: readonly { sequence: ChannelSequence; flags: number; json: string }[]): ChannelFrame[] {
  return page.map(({ sequence, flags, json }) => new ChannelFrame(sequence, flags, json));
}
