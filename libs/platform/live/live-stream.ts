import type { ChannelSequence } from '#libs/kernel/event.ts';
import { storeUnavailable, StreamGone } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { backoffMs, within } from '#libs/platform/lifecycle/index.ts';
import { FRAME_FLAG, decodeLiveMessage } from './frames.ts';
import { entityTopic } from './live.keys.ts';
import type { TopicSubscription, TopicSubscriptions } from '#libs/platform/redis/index.ts';

import { LiveFrame, liveFrames } from './live-frame.ts';
import { EventBuffer } from './event-buffer.ts';
import { FanOut } from './fan-out.ts';
import type { FrameMemory } from './frame-memory.ts';
import type { FrameSource, LiveSource } from './frame-source.ts';
import { CLOSE } from './close-codes.ts';
import { replay, type ReplayedStream, type ReplaySource } from './replay.ts';
import { LOSSY_BYTES, type Subscriber } from './subscriber.ts';
import { ValueCatchUp } from './value-catch-up.ts';

export interface StreamRef {
  readonly organizationId: EntityId;
  readonly id: EntityId;
}

export interface LiveStreamParts extends ReplaySource {
  readonly topics: Pick<TopicSubscriptions, 'subscribe'>;
  readonly frames: FrameMemory;
  /** The topic is received again after an interruption: messages may have been missed. */
  onResubscribed(): void;
  /** An event has changed who may subscribe. */
  onAccessChange(stream: LiveStream): void;
}

const SUBSCRIBE_TIMEOUT_MS = 5_000;
/** Events that arrive out of order are mostly complete within this time. */
const GRACE_MS = 20;
/** Filling a gap waits for subscribers with more unsent bytes than this, for at most `BUSY_WAIT_MS`. */
const BUSY_BYTES = 256 * 1024;
const BUSY_WAIT_MS = 1_000;

/**
 * A stream with its subscribers in this process. Receives the stream's topic, and fills gaps from the log.
 *
 * Guarantees: a subscriber receives every event after its position, once and in order, whatever pub/sub loses,
 * duplicates or reorders; it is live after the event at which its replay ended.
 */
export class LiveStream implements ReplayedStream {
  readonly organizationId: EntityId;
  readonly id: EntityId;
  readonly log: FrameSource;
  readonly #parts: LiveStreamParts;
  readonly #subscription: TopicSubscription;
  readonly #subscribed = Promise.withResolvers<void>();
  readonly #events: EventBuffer;
  readonly #fanOut: FanOut;
  readonly #values: ValueCatchUp;
  /** Subscribers that are not live yet, with the controllers that abort their replays; null before the replay. */
  readonly #joining = new Map<Subscriber, AbortController | null>();
  #isOpened = false;
  /** The topic was interrupted while the stream was opened: messages may have been missed. */
  #isInterrupted = false;
  #isClosed = false;
  #hasEnded = false;
  #fillTimer: NodeJS.Timeout | undefined;
  #isFilling = false;
  #fillFailures = 0;

  constructor(
    { log, values = [], continues = false }: LiveSource,
    { organizationId, id }: StreamRef,
    parts: LiveStreamParts,
  ) {
    this.organizationId = organizationId;
    this.id = id;
    this.log = log;
    this.#parts = parts;
    this.#events = new EventBuffer(parts.frames, (frame) => {
      this.#hasEnded = frame.has(FRAME_FLAG.last) || (this.#hasEnded && !continues);
      this.#fanOut.push(frame);
    });
    this.#values = new ValueCatchUp({
      current: async () => (await Promise.all(values.map((source) => source.current(organizationId, id)))).flat(),
      head: () => this.head,
      onFailure: (error) => parts.warn(error, 'current values could not be read'),
    });
    this.#fanOut = new FanOut(parts.metrics, this.#values, (flags) => {
      if ((flags & FRAME_FLAG.last) !== 0 && this.#hasEnded) this.#fanOut.all().forEach(dismiss);
      else if ((flags & FRAME_FLAG.access) !== 0) parts.onAccessChange(this);
    });
    this.#subscription = parts.topics.subscribe(entityTopic(log.category, organizationId, id), {
      onMessage: (message) => this.#onMessage(message),
      onListening: () => this.#onSubscribed(),
      onInterrupted: () => void (this.#isInterrupted ||= !this.#isOpened),
    });
  }

  /**
   * Subscribes to the topic before it reads the log's head, so that an event appended between the two is received.
   *
   * @returns false if the organization has no such stream
   * @throws `Fault` `store_unavailable`
   */
  async open(): Promise<boolean> {
    await within(SUBSCRIBE_TIMEOUT_MS, this.#subscribed.promise, () => storeUnavailable('Redis'));
    const head = await this.log.head(this.organizationId, this.id);
    if (head === null) return false;
    this.#events.announce(head);
    this.#events.start(head - 1);
    // The newest event shows whether the stream has ended.
    await this.#readLog();
    if (this.#events.hasGap) this.#fillSoon();
    this.#isOpened = true;
    if (this.#isInterrupted) this.#parts.onResubscribed();
    return true;
  }

  async #readLog(): Promise<void> {
    for await (const page of this.log.framesAfter(this.organizationId, this.id, this.head)) {
      this.offer(liveFrames(page));
    }
  }

  /** False during the opening, which may still fail: subscribers cannot join before. */
  get isOpen(): boolean {
    return this.#isOpened && !this.#isClosed;
  }

  get head(): ChannelSequence {
    return this.#events.head;
  }

  /** The newest event is the last one, such as the archiving of a channel. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get size(): number {
    return this.#joining.size + this.#fanOut.size;
  }

  subscribers(): readonly Subscriber[] {
    return [...this.#joining.keys(), ...this.#fanOut.all()];
  }

  /** Keeps the stream open for a subscriber that has not resumed yet. */
  keepFor(subscriber: Subscriber): void {
    this.#joining.set(subscriber, null);
  }

  /** Starts the replay from the subscriber's position, which must not be beyond the head. */
  join(subscriber: Subscriber): void {
    const closed = new AbortController();
    this.#joining.set(subscriber, closed);
    void replay(this, subscriber, this.#parts, closed.signal);
  }

  leave(subscriber: Subscriber): void {
    this.#joining.get(subscriber)?.abort();
    this.#joining.delete(subscriber);
    this.#fanOut.remove(subscriber);
  }

  /** Makes a subscriber live whose replay has reached the head. It has received the due frames, so they are flushed before. */
  enter(subscriber: Subscriber): void {
    if (!this.#joining.delete(subscriber)) return;
    this.#fanOut.flush();
    this.#fanOut.add(subscriber);
    subscriber.caughtUp(this.head);
    if (this.#hasEnded) dismiss(subscriber);
    else this.#values.request(subscriber);
  }

  /** See `EventBuffer.after`. */
  recentAfter(position: number, maxBytes: number): readonly LiveFrame[] | null {
    return this.#events.after(position, maxBytes);
  }

  /**
   * Whether the stream has a sequence that a client claims to have seen, possibly through another process.
   *
   * @throws `Fault` `store_unavailable`
   */
  async reaches(sequence: number): Promise<boolean> {
    if (sequence <= this.head) return true;
    const head = await this.log.head(this.organizationId, this.id);
    if (head === null || head < sequence) return false;
    await this.#readLog();
    return sequence <= this.head;
  }

  /** @throws StreamGone if the event after a sequence is needed from the log, and was deleted there */
  async refuseDeleted(after: number): Promise<void> {
    if (this.recentAfter(after, 0) !== null) return;
    await this.log.refuseDeleted(this.id, after, this.head);
  }

  /**
   * Adds events from the log: live subscribers get those after the head, and replays find the earlier ones in memory.
   *
   * @returns how many extended the head
   */
  offer(frames: readonly LiveFrame[]): number {
    const before = this.head;
    for (const frame of frames) this.#events.put(frame);
    // Others that replay may need them as well; for a single reader, they would take the memory of other channels.
    if (this.#joining.size > 1) this.#events.extendBack(frames);
    if (this.#events.hasGap) this.#fillSoon();
    return this.head - before;
  }

  /** The stream has reached this sequence: reads missing events up to it from the log. */
  announce(sequence: number): void {
    this.#events.announce(sequence);
    if (this.#events.hasGap) this.#fillSoon();
  }

  /** Requests values again that could not be read before. */
  retryValues(): void {
    for (const subscriber of this.#fanOut.all()) if (subscriber.lacksValues) this.#values.request(subscriber);
  }

  flush(): void {
    this.#fanOut.flush();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#fillTimer);
    this.#subscription.stop();
    this.#events.clear();
  }

  #onSubscribed(): void {
    this.#subscribed.resolve();
    if (!this.#isOpened) return;
    this.#parts.onResubscribed();
    for (const subscriber of this.#fanOut.all()) this.#values.request(subscriber);
  }

  #onMessage(message: Buffer): void {
    for (const item of decodeLiveMessage(message)) {
      if (item.kind === 'head') this.#events.announce(item.sequence);
      else if (item.kind === 'event') {
        if (item.sequence > this.head) this.#events.put(new LiveFrame(item.sequence, item.flags, item.json));
      } else if (item.kind === 'user value') {
        this.#sendToUser(item.userId, new LiveFrame(null, item.flags, item.json));
      } else if (this.#fanOut.size > 0) {
        const frame = new LiveFrame(null, item.flags, item.json);
        this.#values.observe(frame);
        this.#fanOut.push(frame);
      }
    }
    if (this.#events.hasGap) this.#fillSoon();
  }

  /** Also to subscribers that replay: what their clients have read may be older. */
  #sendToUser(userId: EntityId, frame: LiveFrame): void {
    for (const subscriber of this.subscribers()) {
      const { grant, unsentBytes } = subscriber;
      const isOfUser = grant.principalType === 'user' && grant.principalId === userId;
      const bytes = isOfUser && unsentBytes <= LOSSY_BYTES ? subscriber.encode([frame]) : null;
      if (bytes !== null) subscriber.write(bytes);
    }
  }

  #fillSoon(pauseMs = GRACE_MS): void {
    if (this.#isClosed || this.#isFilling) return;
    this.#fillTimer ??= setTimeout(() => {
      this.#fillTimer = undefined;
      if (this.#events.hasGap) void this.#fillGap();
    }, pauseMs);
  }

  /** Reads missing events from the log; retries until the gap is filled. */
  async #fillGap(): Promise<void> {
    this.#isFilling = true;
    let filled = 0;
    try {
      for await (const page of this.log.framesAfter(this.organizationId, this.id, this.head)) {
        filled += this.offer(liveFrames(page));
        this.flush();
        await this.#awaitBusySubscribers();
        if (this.#isClosed) return;
      }
    } catch (error) {
      this.#parts.warn(error, 'missing events could not be read');
      if (error instanceof StreamGone) {
        for (const subscriber of this.subscribers()) subscriber.close(CLOSE.eventsGone, error.message);
      }
    } finally {
      this.#isFilling = false;
      if (filled > 0) {
        this.#parts.metrics.gaps.add();
        this.#parts.metrics.filled.add({}, filled);
      }
    }
    this.#fillFailures = filled > 0 ? 0 : this.#fillFailures + 1;
    if (this.#events.hasGap) this.#fillSoon(backoffMs(this.#fillFailures + 1));
  }

  /** A long gap must not close subscribers as too slow that read at a normal speed. */
  async #awaitBusySubscribers(): Promise<void> {
    const busy = this.#fanOut.all().filter(({ unsentBytes }) => unsentBytes > BUSY_BYTES);
    if (busy.length === 0) return;
    const drained = Promise.all(busy.map((subscriber) => subscriber.drained()));
    await within(BUSY_WAIT_MS, drained, () => new Error('still busy')).catch(() => undefined);
  }
}

function dismiss(subscriber: Subscriber): void {
  subscriber.close(CLOSE.ended, subscriber.reasons.ended);
}
