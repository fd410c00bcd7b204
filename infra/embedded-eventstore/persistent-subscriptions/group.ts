// One group: reads its source while its consumers have room, delivers, retries,
// parks, and stores a checkpoint of what is handled.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createFilter } from '../grpc/filter.ts';
import type { EventFilter } from '../grpc/filter.ts';
import { logSource } from '../log/event-log.ts';
import type { EventLog, LogSource } from '../log/event-log.ts';
import type { StoredEvent } from '../log/stored-event.ts';
import { Checkpointer } from './checkpointer.ts';
import { Consumer } from './consumer.ts';
import type { ConsumerOptions } from './consumer.ts';
import { maximumSubscribersReached, subscriptionDropped } from './errors.ts';
import { isParkedStream, streamOfSource } from './group-settings.ts';
import type { GroupRecord } from './group-settings.ts';
import type { GroupStore } from './group-store.ts';
import { offerInOrder, RetryQueue } from './message.ts';
import type { Message } from './message.ts';
import { ParkedMessages } from './parked-messages.ts';
import { createStrategy } from './strategies.ts';
import type { Strategy } from './strategies.ts';

/** Events read at once from a source with a filter, which may match few of them. */
const FILTERED_PAGE = 128;

export type NackAction = 'park' | 'retry' | 'skip' | 'stop';

/**
 * Guarantees: every event of the source from the checkpoint on is delivered at
 * least once, until it is acknowledged, skipped or durably parked; a consumer
 * has at most its buffer size in flight; a checkpoint on disk is never beyond
 * an unhandled event. Omissions: order is kept only among first deliveries.
 */
export class Group {
  readonly record: GroupRecord;
  readonly consumers: Consumer[] = [];
  readonly parked: ParkedMessages;
  readonly checkpointer: Checkpointer;
  readonly retries = new RetryQueue();
  totalItems = 0;
  /** Highest offset that was delivered; undefined before the first. */
  lastKnownOffset: number | undefined;
  isLive = false;
  #log: EventLog;
  #source: LogSource;
  #belongs: EventFilter;
  #strategy: Strategy<Consumer>;
  /** Read and not delivered yet, in order. */
  #queue: Message[] = [];
  #parking = new Map<Message, Promise<void>>();
  /** Offset of the next event to read. */
  #next: number;
  #isPumping = false;
  #isStopped = false;
  #endListening: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(log: EventLog, store: GroupStore, record: GroupRecord) {
    const checkpoint = store.checkpoint(record);
    this.record = record;
    this.parked = new ParkedMessages(log, record);
    this.#log = log;
    const stream = streamOfSource(record.source);
    const matches = record.filter ? createFilter(record.filter) : () => true;
    this.#source = logSource(log, stream);
    // Else a group on `$all` would receive the messages that groups park.
    this.#belongs = (event) => stream !== undefined || (!isParkedStream(event.stream) && matches(event));
    this.#strategy = createStrategy(record.settings.strategy);
    this.#next = checkpoint === undefined ? record.firstPlace : checkpoint + 1;
    const ports = {
      current: () => this.#handledOffset(),
      write: (offset: number) => store.putCheckpoint(record, offset),
    };
    this.checkpointer = new Checkpointer(record.settings, ports, checkpoint);
  }

  get queueLength(): number {
    return this.#queue.length;
  }

  get inFlightCount(): number {
    return this.consumers.reduce((sum, consumer) => sum + consumer.inFlightCount, 0);
  }

  get parkingCount(): number {
    return this.#parking.size;
  }

  /** The caller confirms to the client, then calls `start`. @throws CallError when the group is full or gone */
  connect(options: Omit<ConsumerOptions, 'extraStatistics'>): Consumer {
    const { maxSubscriberCount, extraStatistics } = this.record.settings;
    if (this.#isStopped) throw subscriptionDropped(this.record);
    if (maxSubscriberCount > 0 && this.consumers.length >= maxSubscriberCount)
      throw maximumSubscribersReached(this.record);
    const consumer = new Consumer({ ...options, extraStatistics });
    this.consumers.push(consumer);
    this.#endListening ??= this.#source.onCommit(() => {
      this.isLive = false;
      this.#pump();
    });
    return consumer;
  }

  start(): void {
    this.#pump();
  }

  /** Delivers what the consumer had in flight to others. */
  disconnect(consumer: Consumer): void {
    const at = this.consumers.indexOf(consumer);
    if (at < 0) return;
    this.consumers.splice(at, 1);
    for (const message of consumer.inFlight()) this.#retryOrPark(message);
    if (this.consumers.length === 0) {
      this.#endListening?.();
      this.#endListening = undefined;
    }
    this.#pump();
  }

  /** Ignores ids that are not in flight at this consumer. */
  acknowledge(consumer: Consumer, ids: readonly string[]): void {
    for (const message of this.#take(consumer, ids)) this.#handled(message);
    this.#pump();
  }

  refuse(consumer: Consumer, ids: readonly string[], action: NackAction, reason: string): void {
    for (const message of this.#take(consumer, ids)) {
      if (action === 'retry') this.#retryOrPark(message);
      else if (action === 'park') this.#park(message, `Client explicitly NAK'ed message.\n${reason}`);
      // As on the real server, `stop` only means that the message is handled: the subscription continues.
      else this.#handled(message);
    }
    this.#pump();
  }

  replayParked(stopAt: number | undefined): void {
    for (const message of this.parked.replay(stopAt)) this.retries.add(message);
    this.#pump();
  }

  /** Drops the consumers and waits for writes under way. Nothing is delivered afterwards. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#endListening?.();
    const dropped = subscriptionDropped(this.record);
    this.#failAll(dropped);
    await Promise.all(this.#parking.values());
    await this.checkpointer.stop();
    await this.parked.stop();
  }

  /** Each consumer leaves the list while it fails. */
  #failAll(error: unknown): void {
    for (const consumer of this.consumers.slice()) consumer.options.out.fail(error);
  }

  #take(consumer: Consumer, ids: readonly string[]): Message[] {
    return ids.map((id) => consumer.take(id)).filter((message) => message !== undefined);
  }

  #handled(message: Message): void {
    if (message.kind === 'read') this.checkpointer.handled();
    else this.parked.handled(message.parkedRevision);
  }

  #retryOrPark(message: Message): void {
    const { maxRetryCount } = this.record.settings;
    if (message.retryCount >= maxRetryCount) this.#park(message, `Reached retry count of ${maxRetryCount}`);
    else this.retries.add({ ...message, retryCount: message.retryCount + 1 });
  }

  /** Until the park is on disk the message counts as unhandled. */
  #park(message: Message, reason: string): void {
    const after = (settle: () => void) => () => {
      this.#parking.delete(message);
      settle();
      this.#pump();
    };
    const work = this.parked.park(message, reason).then(
      after(() => this.#handled(message)),
      after(() => this.retries.add(message)),
    );
    this.#parking.set(message, work);
  }

  /** The last offset up to which everything is handled. */
  #handledOffset(): number {
    let oldest = this.#next;
    const consider = (message: Message) => {
      if (message.kind === 'read') oldest = Math.min(oldest, message.offset);
    };
    for (const consumer of this.consumers) for (const message of consumer.inFlight()) consider(message);
    for (const message of this.retries) consider(message);
    for (const message of this.#parking.keys()) consider(message);
    if (this.#queue[0]) consider(this.#queue[0]);
    return oldest - 1;
  }

  #pump(): void {
    if (this.#isPumping || this.#isStopped) return;
    this.#deliverAndRead().catch((error: unknown) => this.#failAll(error));
  }

  async #deliverAndRead(): Promise<void> {
    const { readBatchSize } = this.record.settings;
    const limit = this.record.filter ? Math.max(FILTERED_PAGE, readBatchSize) : Math.max(1, readBatchSize);
    this.#isPumping = true;
    try {
      this.#deliver();
      while (!this.#isStopped && this.#hasUseForMore()) {
        const { events, next } = this.#source.page(this.#next, 'forwards', limit);
        const last = events.at(-1);
        this.#next = next ?? (last ? this.#source.offsetOf(last) + 1 : this.#next);
        this.#queue.push(...events.filter(this.#belongs).map((event) => this.#toMessage(event)));
        this.#deliver();
        this.isLive = next === undefined;
        if (this.isLive) return;
        await nextTurn();
      }
    } finally {
      // In the same turn as the last look at the source: a commit in between would go unseen.
      this.#isPumping = false;
    }
  }

  #hasUseForMore(): boolean {
    return this.#queue.length < this.record.settings.historyBufferSize && this.consumers.some(({ hasRoom }) => hasRoom);
  }

  #toMessage(stored: StoredEvent): Message {
    const resolve = this.record.settings.resolveLinks && stored.isLink;
    const event = resolve ? this.#log.resolveLink(stored) : stored;
    const link = resolve ? stored : undefined;
    return { kind: 'read', id: stored.id, event, link, retryCount: 0, offset: this.#source.offsetOf(stored) };
  }

  #deliver(): void {
    if (this.consumers.length === 0) return;
    const offer = (message: Message) => {
      const consumer = this.#strategy.choose(message, this.consumers);
      if (!consumer) return this.#strategy.waitsInLine ? 'stop' : 'kept';
      consumer.deliver(message, this.record.settings.messageTimeoutMs);
      this.totalItems++;
      if (message.kind === 'read') this.lastKnownOffset = Math.max(this.lastKnownOffset ?? 0, message.offset);
      return 'taken';
    };
    this.retries.offerAll(offer);
    if (this.consumers.some(({ hasRoom }) => hasRoom)) this.#queue = offerInOrder(this.#queue, offer);
    this.#armTimer();
  }

  /** Deadlines only grow, so a timer that is set is early enough. */
  #armTimer(): void {
    if (this.#timer) return;
    const deadlines = this.consumers.map((consumer) => consumer.nextDeadline ?? Infinity);
    const next = Math.min(...deadlines);
    if (!Number.isFinite(next)) return;
    this.#timer = setTimeout(() => this.#expire(), Math.max(1, next - performance.now())).unref();
  }

  #expire(): void {
    this.#timer = undefined;
    const now = performance.now();
    for (const consumer of this.consumers) for (const message of consumer.takeExpired(now)) this.#retryOrPark(message);
    this.#pump();
    this.#armTimer();
  }
}
