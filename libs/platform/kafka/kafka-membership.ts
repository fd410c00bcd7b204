import type { Batch, Consumer, EachBatchPayload, KafkaMessage } from 'kafkajs';
import type { GlobalPosition } from '#libs/kernel/event.ts';
import {
  comparePositions,
  DEFAULT_MAX_BATCH,
  type FeedItem,
  type FeedOptions,
  type ReadCheckpoints,
  type StoredEvent,
} from '#libs/platform/eventstore/index.ts';
import { disconnect, type KafkaConnection } from './connection.ts';
import { DeliveryQueue, settled } from './delivery-queue.ts';
import { FetchGaps } from './fetch-gaps.ts';
import type { LogMessages, MessagePlace, Refusal } from './log-message.ts';
import { LostError, PartitionReader, type DecodedBatch } from './partition-reader.ts';

export interface KafkaEventFeedParts {
  readonly kafka: KafkaConnection;
  readonly messages: LogMessages;
  /** The topic that a relay fills. */
  readonly topic: string;
  /** Its members share the partitions. Offsets are committed for monitoring only. */
  readonly groupId: string;
  /** The position up to which the relay has published the log; null for nothing. Default: not compared. */
  readonly published?: () => Promise<GlobalPosition | null>;
  /** Called for each message that is not accepted. */
  readonly onRefused?: (refusal: Refusal) => void;
  /** Called when a membership of the group fails, with the number of consecutive failures; and when `ends` is refused. */
  readonly onInterruption?: (error: unknown, failures: number) => void;
  /** Duration without Kafka after which a subscription yields `lost`. Default 15,000. */
  readonly lostAfterMs?: number;
}

/** How long a fetch waits for messages. */
const FETCH_MS = 250;
/** Partitions whose batches are delivered concurrently. */
const MAX_CONCURRENT_PARTITIONS = 16;

/** The partitions of this member between two rebalances. */
interface Assignment {
  /** Partition count of the topic, across all members. */
  readonly partitions: number;
  readonly readers: Map<number, PartitionReader>;
  /** By partition: the offset that `caught-up` waits for. */
  readonly ends: Map<number, bigint>;
  /** Partitions with a batch in progress. */
  readonly busy: Set<number>;
  isCaughtUp: boolean;
}

/** A membership of the consumer group, from joining to its first failure. */
export class KafkaMembership {
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
  /** Counts the assignments. */
  #generation = 0;
  #fetchedAtMs = 0;
  /** Broker ids by `host:port`: kafkajs reports the end of a request with the latter. */
  #brokers: ReadonlyMap<string, number> = new Map();

  constructor(parts: KafkaEventFeedParts, options: FeedOptions<ReadCheckpoints>) {
    this.#parts = parts;
    this.#options = options;
    this.#queue = new DeliveryQueue(options.maxBatch ?? DEFAULT_MAX_BATCH);
    this.#consumer = parts.kafka.groupMember({ groupId: parts.groupId, fetchMs: FETCH_MS });
    this.#gaps = new FetchGaps(() => this.#verifyTopic());
    this.#onAbort = () => this.#queue.close();
    options.signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** When Kafka last answered a fetch, with or without messages; 0 for never. */
  get fetchedAtMs(): number {
    return this.#fetchedAtMs;
  }

  /** Starts to join. Does not wait, because Kafka may be silent, and the feed may be aborted meanwhile. */
  join(): void {
    const { events } = this.#consumer;
    const fail = (error: unknown): void => this.#queue.fail(error);
    this.#consumer.on(events.GROUP_JOIN, ({ payload }) => {
      this.#current = null;
      this.#assignment = this.#assigned(payload.memberAssignment[this.#parts.topic] ?? [], ++this.#generation);
      this.#assignment.catch(fail);
    });
    this.#consumer.on(events.FETCH_START, ({ payload }) => this.#gaps.started(payload.nodeId));
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
    // A consumer that is disconnected while it connects would still become a member, and remain one.
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
  async #assigned(partitions: readonly number[], generation: number): Promise<Assignment> {
    const { kafka, topic } = this.#parts;
    const checkpoints = new Map((await this.#options.from()).map((checkpoint) => [checkpoint.partition, checkpoint]));
    const { offsets, brokers } = await kafka.withAdmin(async (admin) => ({
      offsets: await admin.fetchTopicOffsets(topic),
      brokers: (await admin.describeCluster()).brokers,
    }));
    const assignment: Assignment = {
      partitions: offsets.length,
      readers: new Map(),
      ends: new Map(),
      busy: new Set(),
      isCaughtUp: false,
    };
    // Assigned again meanwhile: items of this assignment must not follow those of the next one.
    if (generation !== this.#generation) return assignment;
    // With another number of partitions, streams continue in other partitions than those of the checkpoints.
    if (offsets.length !== checkpoints.size)
      throw new LostError(`the topic has ${offsets.length} partitions, but there are ${checkpoints.size} checkpoints`);
    for (const { partition, low, high } of offsets) {
      if (!partitions.includes(partition)) continue;
      const checkpoint = checkpoints.get(`${partition}`);
      if (checkpoint === undefined) throw new LostError(`partition ${partition} has no checkpoint`);
      const reader = new PartitionReader(checkpoint);
      reader.checkBounds(BigInt(low), BigInt(high));
      assignment.readers.set(partition, reader);
      assignment.ends.set(partition, BigInt(high));
      // Takes effect before the next fetch; batches that were fetched before become stale.
      this.#seek(partition, reader.seekTo);
    }
    this.#brokers = new Map(brokers.map(({ nodeId, host, port }) => [`${host}:${port}`, nodeId]));
    this.#current = assignment;
    const held = partitions.flatMap((partition) => checkpoints.get(`${partition}`) ?? []);
    this.#queue.push({ kind: 'assigned', checkpoints: held });
    this.#reportCaughtUp(assignment);
    return assignment;
  }

  #answered(address: string): void {
    this.#fetchedAtMs = Date.now();
    const broker = this.#brokers.get(address);
    if (broker !== undefined) this.#gaps.answered(broker);
  }

  /** Called before a fetch, after a gap: the topic may have been deleted and created again meanwhile. */
  #verifyTopic(): void {
    for (const [partition, reader] of this.#current?.readers ?? []) {
      // The batch came from another broker, whose next fetch has a gap as well.
      if (this.#current?.busy.has(partition) === true) continue;
      reader.verifyAgain();
      this.#seek(partition, reader.seekTo);
    }
  }

  #seek(partition: number, offset: bigint): void {
    this.#consumer.seek({ topic: this.#parts.topic, partition, offset: `${offset}` });
  }

  async #deliver(payload: EachBatchPayload): Promise<void> {
    const { partition } = payload.batch;
    try {
      const assignment = await settled(this.#assignment, payload.heartbeat);
      assignment.busy.add(partition);
      await this.#read(assignment, payload).finally(() => assignment.busy.delete(partition));
    } catch (error) {
      // kafkajs handles all other errors, among them the one that announces a rebalance.
      if (!(error instanceof LostError)) throw error;
      this.#queue.fail(error);
    }
  }

  async #read(assignment: Assignment, { batch, heartbeat, isStale }: EachBatchPayload): Promise<void> {
    const { topic, partition } = batch;
    const { partitions, readers } = assignment;
    const reader = readers.get(partition);
    if (reader === undefined || isStale() || this.#queue.isClosed) return;
    const seekTo = reader.holeBefore(fetchedFrom(batch));
    if (seekTo !== null) return this.#seek(partition, seekTo);
    const decoded = this.#decode(reader, batch.messages, { topic, partition, partitions });
    if (!(await this.#queue.deliver(decoded.events, heartbeat))) return;
    // The partition may belong to another member now, which may have committed an earlier offset.
    if (assignment !== this.#current) return;
    const checkpoint = reader.delivered(BigInt(batch.lastOffset()), decoded);
    if (checkpoint === null) return;
    const behind = Math.max(0, Number(BigInt(batch.highWatermark) - 1n - BigInt(batch.lastOffset())));
    this.#queue.push({ kind: 'reached', checkpoints: [{ partition: `${partition}`, ...checkpoint, behind }] });
    this.#reportCaughtUp(assignment);
    await this.#consumer.commitOffsets([{ topic, partition, offset: `${reader.next}` }]);
  }

  /** @throws LostError */
  #decode(
    reader: PartitionReader,
    messages: readonly KafkaMessage[],
    place: MessagePlace,
  ): DecodedBatch & { readonly events: readonly StoredEvent[] } {
    let position = reader.position;
    const events: StoredEvent[] = [];
    let last: KafkaMessage | undefined;
    for (const message of reader.unread(messages)) {
      const decoded = this.#parts.messages.decode(message, place);
      if (typeof decoded === 'string') {
        this.#parts.onRefused?.(decoded);
        continue;
      }
      last = message;
      const reached = 'watermark' in decoded ? decoded.watermark : decoded.position;
      if (reached !== null && comparePositions(reached, position) > 0) position = reached;
      if (!('watermark' in decoded) && this.#isWanted(decoded)) events.push(decoded);
    }
    return { events, position, last };
  }

  #isWanted({ stream }: StoredEvent): boolean {
    const { streamPrefixes } = this.#options;
    return streamPrefixes === 'all' || streamPrefixes.some((prefix) => stream.startsWith(prefix));
  }

  /** Once for each assignment. */
  #reportCaughtUp(assignment: Assignment): void {
    if (assignment.isCaughtUp) return;
    for (const [partition, end] of assignment.ends) {
      if ((assignment.readers.get(partition)?.next ?? 0n) < end) return;
    }
    assignment.isCaughtUp = true;
    this.#queue.push({ kind: 'caught-up' });
  }
}

/** The offset that a batch was fetched from; the types of kafkajs lack it. */
function fetchedFrom(batch: Batch): bigint {
  const known: unknown = 'fetchedOffset' in batch ? batch.fetchedOffset : undefined;
  return BigInt(typeof known === 'string' ? known : (batch.messages[0]?.offset ?? batch.lastOffset()));
}
