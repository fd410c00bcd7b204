import type { Admin, Batch, Consumer, EachBatchPayload, KafkaMessage } from 'kafkajs';
import { comparePositions, DEFAULT_MAX_BATCH } from '#libs/platform/eventstore/index.ts';
import type { SharedFeedItem, SharedFeedOptions, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { disconnect } from './connection.ts';
import type { KafkaConnection } from './connection.ts';
import { FetchGaps } from './fetch-gaps.ts';
import { Handover, settled } from './handover.ts';
import type { LogMessages, MessagePlace, Refusal } from './log-message.ts';
import { groupMember } from './membership.ts';
import { LostError, PartitionReading } from './partition-reading.ts';

export interface KafkaSharedFeedParts {
  readonly kafka: KafkaConnection;
  readonly messages: LogMessages;
  /** The topic that a relay fills. */
  readonly topic: string;
  /** Who is in it shares the partitions. Kafka's own note of how far it has come is for those who watch it. */
  readonly groupId: string;
  /** Told of each message that is not taken. */
  readonly onRefused?: (refusal: Refusal) => void;
  /** Hears why a membership of the group ended, and how many have in a row; and what Kafka refuses to tell, once. */
  readonly onInterruption?: (error: unknown, inARow: number) => void;
  /** For so long a subscription tries to become a member again before it says `lost`. Default 15 s. */
  readonly patienceMs?: number;
}

/** How long a fetch waits for news. */
const FETCH_MS = 250;
/** Batches of so many partitions are delivered together: one by one, most of the time would be spent waiting. */
const AT_ONCE = 16;

/** What this member has between two rebalances. */
interface Assignment {
  /** Of the topic, whoever has them. */
  readonly partitions: number;
  readonly readings: Map<number, PartitionReading>;
  /** By partition, the offset up to which there is something to catch up with. */
  readonly ends: Map<number, bigint>;
  /** Partitions of which a batch is being dealt with. */
  readonly busy: Set<number>;
  caughtUp: boolean;
}

/** One membership of the group, from its beginning to its first failure. */
export class SharedMembership {
  readonly #parts: KafkaSharedFeedParts;
  readonly #options: SharedFeedOptions;
  readonly #consumer: Consumer;
  readonly #handover: Handover;
  readonly #onAbort: () => void;
  readonly #gaps: FetchGaps;
  #joining: Promise<void> = Promise.resolve();
  #assignment: Promise<Assignment> = new Promise(() => undefined);
  /** The newest one, once it is known. */
  #current: Assignment | null = null;
  #joined = 0;
  #fetchedMs = 0;
  /** By `host:port`, what brokers are called where fetches are told of. */
  #brokers: ReadonlyMap<string, number> = new Map();

  constructor(parts: KafkaSharedFeedParts, options: SharedFeedOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#handover = new Handover(options.maxBatch ?? DEFAULT_MAX_BATCH);
    this.#consumer = groupMember(parts.kafka, { groupId: parts.groupId, fetchMs: FETCH_MS });
    this.#gaps = new FetchGaps(() => this.#doubt());
    this.#onAbort = () => this.#handover.close();
    options.signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** When Kafka has last answered a fetch, with or without news; 0 for never. */
  get fetchedMs(): number {
    return this.#fetchedMs;
  }

  /** Is not waited for: the feed may be aborted meanwhile, and Kafka may be silent. */
  join(): void {
    const { events } = this.#consumer;
    const fail = (error: unknown): void => this.#handover.fail(error);
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

  next(): Promise<SharedFeedItem | null> {
    return this.#handover.next();
  }

  async leave(): Promise<void> {
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#handover.close();
    // One that is disconnected while it connects becomes a member all the same, of which nobody knows any more.
    await disconnect({ disconnect: () => this.#joining.then(() => this.#consumer.disconnect()) });
  }

  async #becomeMember(): Promise<void> {
    await this.#consumer.connect();
    if (this.#handover.isClosed) return;
    await this.#consumer.subscribe({ topics: [this.#parts.topic], fromBeginning: true });
    if (this.#handover.isClosed) return;
    await this.#consumer.run({
      autoCommit: false,
      partitionsConsumedConcurrently: AT_ONCE,
      eachBatch: (payload) => this.#deliver(payload),
    });
  }

  /** @throws LostError where what follows a mark is not there */
  async #assigned(partitions: readonly number[], joined: number): Promise<Assignment> {
    const { kafka, topic } = this.#parts;
    const marks = new Map((await this.#options.marks()).map((mark) => [mark.share, mark]));
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
    // Dealt out anew meanwhile: what is told of this one must not come after what is told of the next.
    if (joined !== this.#joined) return assignment;
    // With another number of partitions, streams go on in others than those that the marks speak of.
    if (offsets.length !== marks.size)
      throw new LostError(`the topic has ${offsets.length} partitions, and ${marks.size} are known`);
    for (const { partition, low, high } of offsets) {
      if (!partitions.includes(partition)) continue;
      const mark = marks.get(`${partition}`);
      if (mark === undefined) throw new LostError(`nothing is known of partition ${partition}`);
      const reading = new PartitionReading(mark);
      reading.checkBounds(BigInt(low), BigInt(high));
      assignment.readings.set(partition, reading);
      assignment.ends.set(partition, BigInt(high));
      // Has an effect before anything that is fetched from now on, and makes what was fetched already stale.
      this.#seek(partition, reading.seekTo);
    }
    this.#brokers = new Map(brokers.map(({ nodeId, host, port }) => [`${host}:${port}`, nodeId]));
    this.#current = assignment;
    const held = partitions.flatMap((partition) => marks.get(`${partition}`) ?? []);
    this.#handover.tell({ kind: 'assigned', marks: held });
    this.#tellIfCaughtUp(assignment);
    return assignment;
  }

  #answered(address: string): void {
    this.#fetchedMs = Date.now();
    const broker = this.#brokers.get(address);
    if (broker !== undefined) this.#gaps.answered(broker);
  }

  /** Before a fetch, after a while without any: the topic may have been deleted, made and filled again meanwhile. */
  #doubt(): void {
    for (const [partition, reading] of this.#current?.readings ?? []) {
      // Of what another broker has sent: its own next fetch is late, too.
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
      // Of everything else kafkajs knows what to do: it is how a rebalance is told.
      if (!(error instanceof LostError)) throw error;
      this.#handover.fail(error);
    }
  }

  async #read(assignment: Assignment, { batch, heartbeat, isStale }: EachBatchPayload): Promise<void> {
    const { topic, partition } = batch;
    const { partitions, readings } = assignment;
    const reading = readings.get(partition);
    if (reading === undefined || isStale() || this.#handover.isClosed) return;
    const seekTo = reading.holeBefore(fetchedFrom(batch));
    if (seekTo !== null) return this.#seek(partition, seekTo);
    const news = this.#decode(reading, batch.messages, { topic, partition, partitions });
    if (!(await this.#handover.deliver(news.events, heartbeat))) return;
    // Others have it by now, and may have gone back in it.
    if (assignment !== this.#current) return;
    const mark = reading.passed(BigInt(batch.lastOffset()), news);
    if (mark === null) return;
    const behind = Math.max(0, Number(BigInt(batch.highWatermark) - 1n - BigInt(batch.lastOffset())));
    this.#handover.tell({ kind: 'reached', marks: [{ share: `${partition}`, ...mark, behind }] });
    this.#tellIfCaughtUp(assignment);
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
    return this.#options.streamPrefixes.some((prefix) => stream.startsWith(prefix));
  }

  /** Once for each assignment. */
  #tellIfCaughtUp(assignment: Assignment): void {
    if (assignment.caughtUp) return;
    for (const [partition, end] of assignment.ends) {
      if ((assignment.readings.get(partition)?.next ?? 0n) < end) return;
    }
    assignment.caughtUp = true;
    this.#handover.tell({ kind: 'caught-up' });
  }
}

/**
 * None where kafkajs cannot say: it asks for all topics as well, and somebody's may have no leader. Then a fetch that
 * broke off is told from one without news only by the time that it took.
 */
async function brokersOf(admin: Admin): Promise<Awaited<ReturnType<Admin['describeCluster']>>['brokers']> {
  try {
    return (await admin.describeCluster()).brokers;
  } catch {
    return [];
  }
}

/** The offset that a batch was asked for from: kafkajs has it, its types do not. */
function fetchedFrom(batch: Batch): bigint {
  const known: unknown = 'fetchedOffset' in batch ? batch.fetchedOffset : undefined;
  return BigInt(typeof known === 'string' ? known : (batch.messages[0]?.offset ?? batch.lastOffset()));
}
