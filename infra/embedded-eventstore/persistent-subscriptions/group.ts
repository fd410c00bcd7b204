// A consumer group: reads its source while its consumers have room, delivers,
// retries, parks, and stores a checkpoint of the handled events.
import { createFilter, type EventFilter } from '../grpc/filter.ts';
import { logSource, type EventLog, type LogSource } from '../log/event-log.ts';
import type { StoredEvent } from '../log/stored-event.ts';
import { Checkpointer } from './checkpointer.ts';
import { Consumer, type ConsumerOptions } from './consumer.ts';
import {
  type GroupRecord,
  type GroupStore,
  isParkedStream,
  maximumSubscribersReached,
  streamOfSource,
  subscriptionDropped,
} from './group-settings.ts';
import { insertInOrder, offerInOrder, type Message } from './message.ts';
import { ParkedMessages } from './parked-messages.ts';
import { createStrategy, type Strategy } from './strategies.ts';

/** Events read at once from a source with a filter, which may match few of them. */
const FILTERED_PAGE = 128;

export type NackAction = 'park' | 'retry' | 'skip' | 'stop';

/**
 * Guarantees: every event of the source from the checkpoint on is delivered at least once, until it is acknowledged,
 * skipped or durably parked; a consumer has at most its buffer size in flight; a checkpoint on disk is never beyond an
 * unhandled event. Omissions: order is kept only among first deliveries.
 */
export class Group {
  readonly record: GroupRecord;
  readonly consumers: Consumer[] = [];
  readonly parked: ParkedMessages;
  readonly checkpointer: Checkpointer;
  /** Messages that wait for their next delivery, in order. */
  retries: Message[] = [];
  totalItems = 0;
  /** Highest offset that was delivered; undefined before the first. */
  lastKnownOffset: number | undefined;
  isLive = false;
  #log: EventLog;
  #source: LogSource;
  #belongs: EventFilter;
  #strategy: Strategy<Consumer>;
  /** Messages read and not delivered yet, in order. */
  #queue: Message[] = [];
  #parking = new Map<Message, Promise<void>>();
  /** Offset of the next event to read. */
  #next: number;
  #isPumping = false;
  #isStopped = false;
  #unsubscribe: (() => void) | undefined;
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

  /** The caller confirms to the client, then calls `pump`. @throws CallError when the group is full or stopped */
  connect(options: Omit<ConsumerOptions, 'extraStatistics'>): Consumer {
    const { maxSubscriberCount, extraStatistics } = this.record.settings;
    if (this.#isStopped) throw subscriptionDropped(this.record);
    if (maxSubscriberCount > 0 && this.consumers.length >= maxSubscriberCount)
      throw maximumSubscribersReached(this.record);
    const consumer = new Consumer({ ...options, extraStatistics });
    this.consumers.push(consumer);
    this.#unsubscribe ??= this.#source.onCommit(() => {
      this.isLive = false;
      this.pump();
    });
    return consumer;
  }

  /** Delivers the consumer's messages in flight to others. */
  disconnect(consumer: Consumer): void {
    const at = this.consumers.indexOf(consumer);
    if (at < 0) return;
    this.consumers.splice(at, 1);
    for (const message of consumer.inFlight()) this.#retryOrPark(message);
    if (this.consumers.length === 0) {
      this.#unsubscribe?.();
      this.#unsubscribe = undefined;
    }
    this.pump();
  }

  /** Ignores ids that are not in flight at this consumer. */
  acknowledge(consumer: Consumer, ids: readonly string[]): void {
    for (const message of this.#take(consumer, ids)) this.#handled(message);
    this.pump();
  }

  refuse(consumer: Consumer, ids: readonly string[], action: NackAction, reason: string): void {
    for (const message of this.#take(consumer, ids)) {
      if (action === 'retry') this.#retryOrPark(message);
      else if (action === 'park') this.#park(message, `Client explicitly NAK'ed message.\n${reason}`);
      // As on the real server, `stop` only means that the message is handled: the subscription continues.
      else this.#handled(message);
    }
    this.pump();
  }

  replayParked(stopAt: number | undefined): void {
    for (const message of this.parked.replay(stopAt)) insertInOrder(this.retries, message);
    this.pump();
  }

  /** Drops the consumers and waits for writes under way. Nothing is delivered afterwards. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#unsubscribe?.();
    this.#failAll(subscriptionDropped(this.record));
    await Promise.all(this.#parking.values());
    await this.checkpointer.stop();
    await this.parked.stop();
  }

  /** Each consumer leaves `consumers` when it fails. */
  #failAll(error: unknown): void {
    for (const consumer of this.consumers.slice()) consumer.options.fail(error);
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
    else insertInOrder(this.retries, { ...message, retryCount: message.retryCount + 1 });
  }

  /** The message is unhandled until its parking is on disk. */
  #park(message: Message, reason: string): void {
    const after = (settle: () => void) => () => {
      this.#parking.delete(message);
      settle();
      this.pump();
    };
    const work = this.parked.park(message, reason).then(
      after(() => this.#handled(message)),
      after(() => insertInOrder(this.retries, message)),
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

  /** Delivers, and reads more while consumers have room: a page in each iteration of the event loop. */
  pump(): void {
    if (this.#isPumping || this.#isStopped) return;
    this.#isPumping = true;
    let isDone = true;
    try {
      this.#deliver();
      if (this.#needsMore()) isDone = this.#readPage();
    } catch (error) {
      this.#isPumping = false;
      return this.#failAll(error);
    }
    if (!isDone) setImmediate(() => this.#resume());
    // In the same turn as the last read of the source: a commit in between would be missed.
    else this.#isPumping = false;
  }

  #resume(): void {
    this.#isPumping = false;
    this.pump();
  }

  /** Whether it was the last page. */
  #readPage(): boolean {
    const { readBatchSize } = this.record.settings;
    const limit = this.record.filter ? Math.max(FILTERED_PAGE, readBatchSize) : Math.max(1, readBatchSize);
    const { events, next } = this.#source.page(this.#next, 'forwards', limit);
    const last = events.at(-1);
    this.#next = next ?? (last ? this.#source.offsetOf(last) + 1 : this.#next);
    const belonging = events.filter(this.#belongs);
    if (belonging.length > 0) {
      this.#queue.push(...belonging.map((event) => this.#toMessage(event)));
      this.#deliver();
    }
    return (this.isLive = next === undefined);
  }

  #needsMore(): boolean {
    return this.#queue.length < this.record.settings.historyBufferSize && this.consumers.some(({ hasRoom }) => hasRoom);
  }

  #toMessage(stored: StoredEvent): Message {
    const resolve = this.record.settings.resolveLinks && stored.isLink;
    const event = resolve ? this.#log.resolveLink(stored) : stored;
    const link = resolve ? stored : undefined;
    return { kind: 'read', id: stored.id, event, link, retryCount: 0, offset: this.#source.offsetOf(stored) };
  }

  #deliver(): void {
    if (this.consumers.length === 0 || this.#queue.length + this.retries.length === 0) return;
    const offer = (message: Message) => {
      const consumer = this.#strategy.choose(message, this.consumers);
      if (!consumer) return this.#strategy.waitsInLine ? 'stop' : 'kept';
      consumer.deliver(message, this.record.settings.messageTimeoutMs);
      this.totalItems++;
      if (message.kind === 'read') this.lastKnownOffset = Math.max(this.lastKnownOffset ?? 0, message.offset);
      return 'taken';
    };
    this.retries = offerInOrder(this.retries, offer);
    if (this.consumers.some(({ hasRoom }) => hasRoom)) this.#queue = offerInOrder(this.#queue, offer);
    this.#armTimer();
  }

  /** Deadlines only increase, so an existing timer is early enough. */
  #armTimer(): void {
    if (this.#timer) return;
    const next = Math.min(...this.consumers.map(({ nextDeadline }) => nextDeadline));
    if (!Number.isFinite(next)) return;
    this.#timer = setTimeout(() => this.#expire(), Math.max(1, next - performance.now())).unref();
  }

  #expire(): void {
    this.#timer = undefined;
    const now = performance.now();
    for (const consumer of this.consumers) for (const message of consumer.takeExpired(now)) this.#retryOrPark(message);
    this.pump();
    this.#armTimer();
  }
}
