import type { Admin, Batch, Consumer, EachBatchPayload, KafkaMessage } from 'kafkajs';
import { comparePositions, DEFAULT_MAX_BATCH } from '#libs/platform/eventstore/index.ts';
import type { FeedItem, FeedOptions, ReadCheckpoints, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { disconnect } from './connection.ts';
import type { KafkaConnection } from './connection.ts';
import { FetchGaps } from './fetch-gaps.ts';
import { DeliveryQueue, settled } from './delivery-queue.ts';
import type { LogMessages, MessagePlace, Refusal } from './log-message.ts';
import { groupMember } from './group-member.ts';
import { LostError, PartitionReading } from './partition-reading.ts';

export interface KafkaEventFeedParts {
  readonly kafka: KafkaConnection;
  readonly messages: LogMessages;
  /** The topic that a relay fills. */
  readonly topic: string;
  /** Who is in it partitions the partitions. Kafka's own note of how far it has come is for those who watch it. */
  readonly groupId: string;
  /** Told of each message that is not taken. */
  readonly onRefused?: (refusal: Refusal) => void;
  /** Hears why a membership of the group ended, and how many have in a row; and what Kafka refuses to tell, once. */
  readonly onInterruption?: (error: unknown, inARow: number) => void;
  /** For so long a subscription tries to become a member again before it says `lost`. Default 15 s. */
  readonly patienceMs?: number;
}

/** How long a fetch waits for messages. */
const FETCH_MS = 250;
/** Partitions whose batches are delivered together: one by one, most of the time would be spent waiting. */
const MAX_CONCURRENT_PARTITIONS = 16;

/** The partitions of this member between two rebalances. */
interface Assignment {
  /** Partition count of the topic, across all members. */
  readonly partitions: number;
  readonly readings: Map<number, PartitionReading>;
  /** By partition, the offset that `caught-up` waits for. */
  readonly ends: Map<number, bigint>;
  /** Partitions with a batch in progress. */
  readonly busy: Set<number>;
  caughtUp: boolean;
}

/** One membership of the consumer group, from joining to its first failure. */
export class GroupMembership {
  readonly #parts: KafkaEventFeedParts;
  readonly #options: FeedOptions<ReadCheckpoints>;
  readonly #consumer: Consumer;
  readonly #queue: DeliveryQueue;
  readonly #onAbort: () => void;
  readonly #gaps: FetchGaps;
  #joining: Promise<void> = Promise.resolve();
  #assignment: Promise<Assignment> = new Promise(() => undefined);
  /** The latest assignment, once its checkpoints are read. */
  #current: Assignment | null = null;
  #joined = 0;
  #fetchedMs = 0;
  /** Broker ids by `host:port`, for fetch events. */
  #brokers: ReadonlyMap<string, number> = new Map();

  constructor(parts: KafkaEventFeedParts, options: FeedOptions<ReadCheckpoints>) {
    this.#parts = parts;
    this.#options = options;
    this.#queue = new DeliveryQueue(options.maxBatch ?? DEFAULT_MAX_BATCH);
    this.#consumer = groupMember(parts.kafka, { groupId: parts.groupId, fetchMs: FETCH_MS });
    this.#gaps = new FetchGaps(() => this.#doubt());
    this.#onAbort = () => this.#queue.close();
    options.signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** When Kafka last answered a fetch, with or without messages; 0 for never. */
  get fetchedMs(): number {
    return this.#fetchedMs;
  }

  /** Does not wait: the feed may be aborted meanwhile, and Kafka may be silent. */
  join(): void {
    const { events } = this.#consumer;
    const fail = (error: unknown): void => this.#queue.fail(error);
    this.#consumer.on(events.GROUP_JOIN, ({ payload }) => {
      this.#current = null;
      this.#assignment = this.#assigned(payload.memberAssignment[this.#parts.topic] ?? [], ++this.#joined);
      this.#assignment.catch(fail);
    });
    this.#consumer.on(events.FETCH_START, ({ payload }) => this.#gaps.begun(payload.nodeId));
    this.#consumer.on(events.REQUEST, ({ payload }) => {
      if (payload.apiName === 'Fetch') this.#answered(payload.broker);
    });
    this.#consumer.on(events.FETCH, ({ payload }) => this.#gaps.ended(payload.nodeId));
    this.#consumer.on(events.CRASH, ({ payload }) => fail(payload.error));
    this.#joining = this.#becomeMember().catch(fail);
  }

  next(): Promise<FeedItem | null> {
    return this.#queue.next();
  }

  async leave(): Promise<void> {
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#queue.close();
    // A consumer that is disconnected while it connects would become a member that nothing can close.
    await disconnect({ disconnect: () => this.#joining.then(() => this.#consumer.disconnect()) });
  }

  async #becomeMember(): Promise<void> {
    await this.#consumer.connect();
    if (this.#queue.isClosed) return;
    await this.#consumer.subscribe({ topics: [this.#parts.topic], fromBeginning: true });
    if (this.#queue.isClosed) return;
    await this.#consumer.run({
      autoCommit: false,
      partitionsConsumedConcurrently: MAX_CONCURRENT_PARTITIONS,
      eachBatch: (payload) => this.#deliver(payload),
    });
  }

  /** @throws LostError where the messages after a checkpoint are missing */
  async #assigned(partitions: readonly number[], joined: number): Promise<Assignment> {
    const { kafka, topic } = this.#parts;
    const checkpoints = new Map((await this.#options.from()).map((checkpoint) => [checkpoint.partition, checkpoint]));
    const { offsets, brokers } = await kafka.withAdmin(async (admin) => ({
      offsets: await admin.fetchTopicOffsets(topic),
      brokers: await brokersOf(admin),
    }));
    const assignment: Assignment = {
      partitions: offsets.length,
      readings: new Map(),
      ends: new Map(),
      busy: new Set(),
      caughtUp: false,
    };
    // Assigned again meanwhile: items of this assignment must not follow those of the next.
    if (joined !== this.#joined) return assignment;
    // With another number of partitions, streams continue in other partitions than those of the checkpoints.
    if (offsets.length !== checkpoints.size)
      throw new LostError(`the topic has ${offsets.length} partitions, and ${checkpoints.size} are known`);
    for (const { partition, low, high } of offsets) {
      if (!partitions.includes(partition)) continue;
      const checkpoint = checkpoints.get(`${partition}`);
      if (checkpoint === undefined) throw new LostError(`partition ${partition} has no checkpoint`);
      const reading = new PartitionReading(checkpoint);
      reading.checkBounds(BigInt(low), BigInt(high));
      assignment.readings.set(partition, reading);
      assignment.ends.set(partition, BigInt(high));
      // Takes effect before the next fetch, and makes batches that were fetched already stale.
      this.#seek(partition, reading.seekTo);
    }
    this.#brokers = new Map(brokers.map(({ nodeId, host, port }) => [`${host}:${port}`, nodeId]));
    this.#current = assignment;
    const held = partitions.flatMap((partition) => checkpoints.get(`${partition}`) ?? []);
    this.#queue.push({ kind: 'assigned', checkpoints: held });
    this.#reportCaughtUp(assignment);
    return assignment;
  }

  #answered(address: string): void {
    this.#fetchedMs = Date.now();
    const broker = this.#brokers.get(address);
    if (broker !== undefined) this.#gaps.answered(broker);
  }

  /** Before a fetch, after a while without any: the topic may have been deleted and made again meanwhile. */
  #doubt(): void {
    for (const [partition, reading] of this.#current?.readings ?? []) {
      // Sent by another broker, whose own next fetch is late as well.
      if (this.#current?.busy.has(partition) === true) continue;
      reading.doubt();
      this.#seek(partition, reading.seekTo);
    }
  }

  #seek(partition: number, offset: bigint): void {
    this.#consumer.seek({ topic: this.#parts.topic, partition, offset: `${offset}` });
  }

  async #deliver(payload: EachBatchPayload): Promise<void> {
    const { partition } = payload.batch;
    try {
      const assigning = this.#assignment;
      const assignment = await settled(assigning, payload.heartbeat);
      assignment.busy.add(partition);
      await this.#read(assignment, payload).finally(() => assignment.busy.delete(partition));
    } catch (error) {
      // kafkajs handles all other errors; one of them announces a rebalance.
      if (!(error instanceof LostError)) throw error;
      this.#queue.fail(error);
    }
  }

  async #read(assignment: Assignment, { batch, heartbeat, isStale }: EachBatchPayload): Promise<void> {
    const { topic, partition } = batch;
    const { partitions, readings } = assignment;
    const reading = readings.get(partition);
    if (reading === undefined || isStale() || this.#queue.isClosed) return;
    const seekTo = reading.holeBefore(fetchedFrom(batch));
    if (seekTo !== null) return this.#seek(partition, seekTo);
    const decoded = this.#decode(reading, batch.messages, { topic, partition, partitions });
    if (!(await this.#queue.deliver(decoded.events, heartbeat))) return;
    // Another member holds the partition by now, and may have gone back in it.
    if (assignment !== this.#current) return;
    const checkpoint = reading.passed(BigInt(batch.lastOffset()), decoded);
    if (checkpoint === null) return;
    const behind = Math.max(0, Number(BigInt(batch.highWatermark) - 1n - BigInt(batch.lastOffset())));
    this.#queue.push({ kind: 'reached', checkpoints: [{ partition: `${partition}`, ...checkpoint, behind }] });
    this.#reportCaughtUp(assignment);
    await this.#consumer.commitOffsets([{ topic, partition, offset: `${reading.next}` }]);
  }

  /** @throws LostError */
  #decode(reading: PartitionReading, messages: readonly KafkaMessage[], place: MessagePlace) {
    let position = reading.position;
    const events: StoredEvent[] = [];
    let last: KafkaMessage | undefined;
    for (const message of reading.fresh(messages)) {
      const decoded = this.#parts.messages.decode(message, place);
      if (typeof decoded === 'string') {
        this.#parts.onRefused?.(decoded);
        continue;
      }
      last = message;
      const reached = 'watermark' in decoded ? decoded.watermark : decoded.position;
      if (reached !== null && comparePositions(reached, position) > 0) position = reached;
      if ('watermark' in decoded || !this.#isWanted(decoded)) continue;
      events.push(decoded);
    }
    return { events, position, last };
  }

  #isWanted({ stream }: StoredEvent): boolean {
    const { streamPrefixes } = this.#options;
    return streamPrefixes === 'all' || streamPrefixes.some((prefix) => stream.startsWith(prefix));
  }

  /** Once for each assignment. */
  #reportCaughtUp(assignment: Assignment): void {
    if (assignment.caughtUp) return;
    for (const [partition, end] of assignment.ends) {
      if ((assignment.readings.get(partition)?.next ?? 0n) < end) return;
    }
    assignment.caughtUp = true;
    this.#queue.push({ kind: 'caught-up' });
  }
}

/**
 * Empty where kafkajs fails: it asks for all topics as well, and one of them may have no leader. Then a fetch that broke
 * off differs from one without messages only by its duration.
 */
async function brokersOf(admin: Admin): Promise<Awaited<ReturnType<Admin['describeCluster']>>['brokers']> {
  try {
    return (await admin.describeCluster()).brokers;
  } catch {
    return [];
  }
}

/** The offset that a batch was fetched from, which kafkajs' types lack. */
function fetchedFrom(batch: Batch): bigint {
  const known: unknown = 'fetchedOffset' in batch ? batch.fetchedOffset : undefined;
  return BigInt(typeof known === 'string' ? known : (batch.messages[0]?.offset ?? batch.lastOffset()));
}
