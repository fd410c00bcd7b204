import type { Consumer, EachBatchPayload, KafkaMessage } from 'kafkajs';
import type { GlobalPosition } from '#libs/kernel/event.ts';
import { comparePositions } from '#libs/platform/eventstore/index.ts';
import type { EventFeed, FeedItem, FeedOptions, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { backoffMs, pause } from '#libs/platform/lifecycle/index.ts';
import { disconnect } from './connection.ts';
import type { KafkaConnection } from './connection.ts';
import { Handover } from './handover.ts';
import { kafkaFault } from './kafka-errors.ts';
import type { LogMessages, PartitionName, Refusal } from './log-message.ts';
import { groupMember } from './membership.ts';

export interface KafkaFeedParts {
  readonly kafka: KafkaConnection;
  readonly messages: LogMessages;
  /** The topic that a relay fills. */
  readonly topic: string;
  /** The consumer group of a subscription. Subscriptions of one group share the streams among them. */
  readonly groupId: () => string;
  /** The log's own head; what is in Kafka says nothing of what is on its way there. */
  readonly head: () => Promise<GlobalPosition | null>;
  /** Told of each message that is not taken. */
  readonly onRefused?: (refusal: Refusal) => void;
  /** Hears why a membership of the group ended, and how many have in a row. */
  readonly onInterruption?: (error: unknown, inARow: number) => void;
}

const DEFAULT_MAX_BATCH = 500;
/** How long a fetch waits for news. */
const FETCH_MS = 250;

/**
 * {@link EventFeed} on the topic that a relay fills, as a member of a consumer group.
 *
 * It differs from a feed that reads the log itself:
 * - The group remembers how far it has come: asking for the next item acknowledges the one before. `from` only
 *   leaves out what lies at or before it; a group that has been further does not go back.
 * - A subscription gets the streams of the partitions that the group gives it, and others after a rebalance. So
 *   there are no `checkpoint` items: nobody knows what was delivered to the others. For the same reason the position
 *   of an event says nothing of how far the group has come: it must not be saved as that.
 * - An event may come again after later ones of its stream (see `Relay`), though never for the first time.
 * - `caught-up` means the end of the partitions as it was when they were assigned.
 *
 * Messages that are none of ours, or not signed with our secret, are dropped and counted.
 */
export class KafkaEventFeed implements EventFeed {
  readonly #parts: KafkaFeedParts;

  constructor(parts: KafkaFeedParts) {
    this.#parts = parts;
  }

  head(): Promise<GlobalPosition | null> {
    return this.#parts.head();
  }

  async *subscribe(options: FeedOptions): AsyncGenerator<FeedItem, void, undefined> {
    const { signal } = options;
    checkOptions(options);
    const groupId = this.#parts.groupId();
    let inARow = 0;
    while (!signal.aborted) {
      const membership = new Membership(this.#parts, groupId, options);
      try {
        await membership.join();
        for (;;) {
          const item = await membership.next();
          if (item === null) break;
          inARow = 0;
          yield item;
        }
      } catch (error) {
        this.#parts.onInterruption?.(kafkaFault(error), ++inARow);
      } finally {
        await membership.leave();
      }
      if (inARow > 0) await pause(backoffMs(inARow), signal);
    }
  }
}

/** One membership of the group, from its beginning to its first failure. */
class Membership {
  readonly #parts: KafkaFeedParts;
  readonly #groupId: string;
  readonly #options: FeedOptions;
  readonly #consumer: Consumer;
  readonly #handover: Handover<FeedItem>;
  readonly #onAbort: () => void;
  /** By partition, the offset up to which there was something to catch up with; null until that is known. */
  #ends: Map<number, bigint> | null = null;
  /** By partition, the offset up to which this membership has delivered. */
  readonly #delivered = new Map<number, bigint>();

  constructor(parts: KafkaFeedParts, groupId: string, options: FeedOptions) {
    this.#parts = parts;
    this.#groupId = groupId;
    this.#options = options;
    this.#handover = new Handover(options.maxBatch ?? DEFAULT_MAX_BATCH);
    this.#consumer = groupMember(parts.kafka, { groupId, fetchMs: FETCH_MS });
    this.#onAbort = () => this.#handover.close();
    options.signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  async join(): Promise<void> {
    const { topic } = this.#parts;
    const { events } = this.#consumer;
    this.#consumer.on(events.GROUP_JOIN, ({ payload }) => {
      this.#ends = null;
      this.#findEnds(payload.memberAssignment[topic] ?? []).catch((error: unknown) => this.#handover.fail(error));
    });
    this.#consumer.on(events.END_BATCH_PROCESS, ({ payload }) => this.#passed(payload.partition, payload.lastOffset));
    this.#consumer.on(events.CRASH, ({ payload }) => this.#handover.fail(payload.error));
    await this.#consumer.connect();
    await this.#consumer.subscribe({ topics: [topic], fromBeginning: true });
    await this.#consumer.run({ autoCommit: false, eachBatch: (payload) => this.#deliver(payload) });
  }

  /** The next item, or null once the feed is aborted. Errors: whatever ended the membership. */
  next(): Promise<FeedItem | null> {
    return this.#handover.next();
  }

  async leave(): Promise<void> {
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#handover.close();
    await disconnect(this.#consumer);
  }

  async #deliver({ batch, heartbeat }: EachBatchPayload): Promise<void> {
    const wanted = batch.messages.map((message) => this.#wanted(message, batch)).filter((event) => event !== null);
    // Not an error, which kafkajs would repeat: what was not acknowledged is not committed, and comes again.
    if (!(await this.#handover.deliver(wanted, heartbeat))) return;
    const offset = String(BigInt(batch.lastOffset()) + 1n);
    await this.#consumer.commitOffsets([{ topic: batch.topic, partition: batch.partition, offset }]);
  }

  #wanted(message: KafkaMessage, place: PartitionName): StoredEvent | null {
    const { from, streamPrefixes } = this.#options;
    const event = this.#parts.messages.decode(message, place);
    if (typeof event === 'string') {
      this.#parts.onRefused?.(event);
      return null;
    }
    if ('watermark' in event) return null;
    if (streamPrefixes !== 'all' && !streamPrefixes.some((prefix) => event.stream.startsWith(prefix))) return null;
    if (from !== 'start' && event.position !== null && comparePositions(event.position, from) <= 0) return null;
    return event;
  }

  async #findEnds(partitions: readonly number[]): Promise<void> {
    const { kafka, topic } = this.#parts;
    const ends = new Map<number, bigint>();
    await kafka.withAdmin(async (admin) => {
      const [saved] = await admin.fetchOffsets({ groupId: this.#groupId, topics: [topic] });
      for (const { partition, low, high } of await admin.fetchTopicOffsets(topic)) {
        if (!partitions.includes(partition)) continue;
        const offset = BigInt(saved?.partitions.find((one) => one.partition === partition)?.offset ?? -1);
        // What was deleted already is not caught up with.
        const next = offset > BigInt(low) ? offset : BigInt(low);
        if (next < BigInt(high)) ends.set(partition, BigInt(high));
      }
    });
    this.#ends = ends;
    this.#tellIfCaughtUp();
  }

  #passed(partition: number, lastOffset: string): void {
    this.#delivered.set(partition, BigInt(lastOffset) + 1n);
    this.#tellIfCaughtUp();
  }

  /** Once for each assignment. Batches may have ended before it was known which ends there are. */
  #tellIfCaughtUp(): void {
    if (this.#ends === null) return;
    for (const [partition, end] of this.#ends) {
      if ((this.#delivered.get(partition) ?? 0n) < end) return;
    }
    this.#ends = null;
    this.#handover.tell({ kind: 'caught-up' });
  }
}

function checkOptions({ streamPrefixes, maxBatch = DEFAULT_MAX_BATCH }: FeedOptions): void {
  if (streamPrefixes.length === 0) throw new TypeError('a feed needs a stream prefix');
  for (const prefix of streamPrefixes === 'all' ? [] : streamPrefixes) {
    if (prefix === '' || prefix.startsWith('$')) throw new TypeError(`no prefix for a feed: ${JSON.stringify(prefix)}`);
  }
  if (!Number.isSafeInteger(maxBatch) || maxBatch < 1) throw new RangeError(`no batch size: ${maxBatch}`);
}
