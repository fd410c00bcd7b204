import type { Batch, Consumer, EachBatchPayload, KafkaMessage } from 'kafkajs';
import { comparePositions } from '#libs/platform/eventstore/index.ts';
import type {
  SharedFeed,
  SharedFeedItem,
  SharedFeedOptions,
  ShareEnd,
  StoredEvent,
} from '#libs/platform/eventstore/index.ts';
import { backoffMs, pause } from '#libs/platform/lifecycle/index.ts';
import { disconnect } from './connection.ts';
import type { KafkaConnection } from './connection.ts';
import { Handover, settled } from './handover.ts';
import { kafkaFault } from './kafka-errors.ts';
import type { LogMessages, Refusal } from './log-message.ts';
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
  /** Hears why a membership of the group ended, and how many have in a row. */
  readonly onInterruption?: (error: unknown, inARow: number) => void;
  /** For so long a subscription tries to become a member again before it says `lost`. Default 15 s. */
  readonly patienceMs?: number;
}

const DEFAULT_MAX_BATCH = 500;
const DEFAULT_PATIENCE_MS = 15_000;
/** How long a fetch waits for news. */
const FETCH_MS = 250;
/** Batches of so many partitions are delivered together: one by one, most of the time would be spent waiting. */
const AT_ONCE = 16;

/**
 * {@link SharedFeed} on the topic that a relay fills: a share is a partition, and who gets which is for Kafka's
 * consumer group to say.
 *
 * The position of a share is the greatest that an event or a watermark in it had: a relay sends an event for the first
 * time only after Kafka has acknowledged all before it, so what lies before one in its partition is everything up to
 * it that belongs there.
 *
 * A mark is the offset to go on from, and the time that Kafka has for the message before it. That message is read
 * again, and has to be the same: else the topic is another one by now, where offsets mean something else. `lost` is
 * said of that, of what Kafka has deleted, and of a Kafka that stays away.
 *
 * Messages that are none of ours, or not signed with our secret, are dropped and counted.
 *
 * Omissions: a mark of `ends()` has no such time before its partition was read once.
 */
export class KafkaSharedFeed implements SharedFeed {
  readonly #parts: KafkaSharedFeedParts;

  constructor(parts: KafkaSharedFeedParts) {
    this.#parts = parts;
  }

  async ends(): Promise<readonly ShareEnd[] | null> {
    const { kafka, topic } = this.#parts;
    try {
      const partitions = await kafka.withAdmin((admin) => admin.fetchTopicOffsets(topic));
      // Without a message there is none to know the topic by. A relay soon writes to every partition.
      if (partitions.length === 0 || partitions.some(({ low, high }) => low === high)) return null;
      return partitions.map(({ partition, high }) => ({ share: `${partition}`, mark: `${high}:` }));
    } catch {
      return null;
    }
  }

  async *subscribe(options: SharedFeedOptions): AsyncGenerator<SharedFeedItem, void, undefined> {
    const { signal } = options;
    const { patienceMs = DEFAULT_PATIENCE_MS } = this.#parts;
    let lastThereMs = Date.now();
    for (let inARow = 0; !signal.aborted;) {
      const membership = new SharedMembership(this.#parts, options);
      try {
        membership.join();
        for (;;) {
          const item = await membership.next();
          if (item === null) return;
          inARow = 0;
          yield item;
          lastThereMs = Date.now();
        }
      } catch (error) {
        if (error instanceof LostError) {
          yield { kind: 'lost', reason: error.message };
          return;
        }
        // A member that was given nothing for long was one all the same.
        if (inARow === 0) lastThereMs = Math.max(lastThereMs, membership.fetchedMs);
        this.#parts.onInterruption?.(kafkaFault(error), ++inARow);
      } finally {
        await membership.leave();
      }
      if (Date.now() - lastThereMs > patienceMs) {
        yield { kind: 'lost', reason: 'Kafka has been away for too long' };
        return;
      }
      await pause(backoffMs(inARow, { maxMs: 2_000 }), signal);
    }
  }
}

/** What this member has between two rebalances. */
interface Assignment {
  readonly readings: Map<number, PartitionReading>;
  /** By partition, the offset up to which there is something to catch up with. */
  readonly ends: Map<number, bigint>;
  caughtUp: boolean;
}

/** One membership of the group, from its beginning to its first failure. */
class SharedMembership {
  readonly #parts: KafkaSharedFeedParts;
  readonly #options: SharedFeedOptions;
  readonly #consumer: Consumer;
  readonly #handover: Handover<SharedFeedItem>;
  readonly #onAbort: () => void;
  #assignment: Promise<Assignment> = new Promise(() => undefined);
  #joined = 0;
  #fetchedMs = 0;

  constructor(parts: KafkaSharedFeedParts, options: SharedFeedOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#handover = new Handover(options.maxBatch ?? DEFAULT_MAX_BATCH);
    this.#consumer = groupMember(parts.kafka, { groupId: parts.groupId, fetchMs: FETCH_MS });
    this.#onAbort = () => this.#handover.close();
    options.signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** When Kafka has last answered a fetch, with or without news; 0 for never. */
  get fetchedMs(): number {
    return this.#fetchedMs;
  }

  /** Is not waited for: the feed may be aborted meanwhile, and Kafka may be silent. */
  join(): void {
    const { topic } = this.#parts;
    const { events } = this.#consumer;
    const fail = (error: unknown): void => this.#handover.fail(error);
    this.#consumer.on(events.GROUP_JOIN, ({ payload }) => {
      this.#assignment = this.#assigned(payload.memberAssignment[topic] ?? [], ++this.#joined);
      this.#assignment.catch(fail);
    });
    this.#consumer.on(events.FETCH, () => (this.#fetchedMs = Date.now()));
    this.#consumer.on(events.CRASH, ({ payload }) => fail(payload.error));
    const joining = async (): Promise<void> => {
      await this.#consumer.connect();
      await this.#consumer.subscribe({ topics: [topic], fromBeginning: true });
      await this.#consumer.run({
        autoCommit: false,
        partitionsConsumedConcurrently: AT_ONCE,
        eachBatch: (payload) => this.#deliver(payload),
      });
    };
    joining().catch(fail);
  }

  next(): Promise<SharedFeedItem | null> {
    return this.#handover.next();
  }

  async leave(): Promise<void> {
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#handover.close();
    await disconnect(this.#consumer);
  }

  /** @throws LostError where what follows a mark is not there */
  async #assigned(partitions: readonly number[], joined: number): Promise<Assignment> {
    const { kafka, topic } = this.#parts;
    const marks = new Map((await this.#options.marks()).map((mark) => [mark.share, mark]));
    const offsets = await kafka.withAdmin((admin) => admin.fetchTopicOffsets(topic));
    const assignment: Assignment = { readings: new Map(), ends: new Map(), caughtUp: false };
    // Dealt out anew meanwhile: what is told of this one must not come after what is told of the next.
    if (joined !== this.#joined) return assignment;
    for (const { partition, low, high } of offsets) {
      if (!partitions.includes(partition)) continue;
      const mark = marks.get(`${partition}`);
      if (mark === undefined) throw new LostError(`nothing is known of partition ${partition}`);
      const reading = new PartitionReading(mark);
      reading.checkBounds(BigInt(low), BigInt(high));
      assignment.readings.set(partition, reading);
      assignment.ends.set(partition, BigInt(high));
      // Has an effect before anything that is fetched from now on, and makes what was fetched already stale.
      this.#consumer.seek({ topic, partition, offset: `${reading.seekTo}` });
    }
    const held = partitions.flatMap((partition) => marks.get(`${partition}`) ?? []);
    this.#handover.tell({ kind: 'assigned', marks: held });
    this.#tellIfCaughtUp(assignment);
    return assignment;
  }

  async #deliver(payload: EachBatchPayload): Promise<void> {
    try {
      await this.#read(payload);
    } catch (error) {
      // Of everything else kafkajs knows what to do: it is how a rebalance is told.
      if (!(error instanceof LostError)) throw error;
      this.#handover.fail(error);
    }
  }

  async #read({ batch, heartbeat, isStale }: EachBatchPayload): Promise<void> {
    const { topic, partition } = batch;
    const assigning = this.#assignment;
    const assignment = await settled(assigning, heartbeat);
    const reading = assignment.readings.get(partition);
    if (reading === undefined || isStale() || this.#handover.isClosed) return;
    const seekTo = reading.holeBefore(fetchedFrom(batch));
    if (seekTo !== null) return this.#consumer.seek({ topic, partition, offset: `${seekTo}` });
    const news = this.#decode(reading, batch.messages, { topic, partition });
    if (!(await this.#handover.deliver(news.events, heartbeat))) return;
    // Others have it by now, and may have gone back in it.
    if (assigning !== this.#assignment) return;
    const mark = reading.passed(BigInt(batch.lastOffset()), news);
    if (mark === null) return;
    const behind = Math.max(0, Number(BigInt(batch.highWatermark) - 1n - BigInt(batch.lastOffset())));
    this.#handover.tell({ kind: 'reached', marks: [{ share: `${partition}`, ...mark, behind }] });
    this.#tellIfCaughtUp(assignment);
    await this.#consumer.commitOffsets([{ topic, partition, offset: `${reading.next}` }]);
  }

  /** @throws LostError */
  #decode(reading: PartitionReading, messages: readonly KafkaMessage[], place: { topic: string; partition: number }) {
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

/** The offset that a batch was asked for from: kafkajs has it, its types do not. */
function fetchedFrom(batch: Batch): bigint {
  const known: unknown = 'fetchedOffset' in batch ? batch.fetchedOffset : undefined;
  return BigInt(typeof known === 'string' ? known : (batch.messages[0]?.offset ?? batch.lastOffset()));
}
