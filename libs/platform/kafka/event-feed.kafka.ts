import { Fault } from '#libs/kernel/faults.ts';
import { checkFeedOptions } from '#libs/platform/eventstore/index.ts';
import type {
  PartitionedFeed,
  FeedItem,
  FeedOptions,
  PartitionEnd,
  ReadCheckpoints,
} from '#libs/platform/eventstore/index.ts';
import { backoffMs, pause } from '#libs/platform/lifecycle/index.ts';
import { kafkaFault } from './kafka-errors.ts';
import { LostError } from './partition-reading.ts';
import { GroupMembership } from './group-membership.ts';
import type { KafkaEventFeedParts } from './group-membership.ts';

const DEFAULT_PATIENCE_MS = 15_000;

/**
 * {@link PartitionedFeed} on the topic that a relay fills; Kafka's consumer group assigns its partitions.
 *
 * The position of a partition is the greatest of its events and watermarks: a relay sends an event for the first time
 * only after Kafka has acknowledged all events before it, so everything up to the position that belongs to the partition
 * lies before it there.
 *
 * A checkpoint is the next offset, and Kafka's timestamp of the message before it. That message is read again, and has to
 * be the same: otherwise the topic was made anew, and offsets have another meaning. The same is done with the last
 * message that was read, after a while without a fetch. The feed is `lost` then, and when Kafka has deleted the messages
 * that follow, when the number of partitions has changed, and when Kafka stays away.
 *
 * Messages that are not of this Parley, not signed with its secret, or not in their partition are dropped and counted.
 *
 * Omissions: a checkpoint of `ends()` has no timestamp before its partition was read once.
 */
export class KafkaEventFeed implements PartitionedFeed {
  readonly #parts: KafkaEventFeedParts;
  /** Kafka refused to answer with the ends, which was reported. */
  #isRefused = false;

  constructor(parts: KafkaEventFeedParts) {
    this.#parts = parts;
  }

  async ends(): Promise<readonly PartitionEnd[] | null> {
    const { kafka, onInterruption, topic } = this.#parts;
    try {
      const partitions = await kafka.withAdmin((admin) => admin.fetchTopicOffsets(topic));
      this.#isRefused = false;
      // A message is needed to recognize the topic. A relay soon writes to every partition.
      if (partitions.length === 0 || partitions.some(({ low, high }) => low === high)) return null;
      return partitions.map(({ partition, high }) => ({ partition: `${partition}`, checkpoint: `${high}:` }));
    } catch (error) {
      // An unavailable Kafka and a missing topic are temporary. A missing permission is reported.
      if (!(error instanceof Fault) && !this.#isRefused) {
        this.#isRefused = true;
        onInterruption?.(error, 1);
      }
      return null;
    }
  }

  async *subscribe(options: FeedOptions<ReadCheckpoints>): AsyncGenerator<FeedItem, void, undefined> {
    checkFeedOptions(options);
    const { signal } = options;
    const { patienceMs = DEFAULT_PATIENCE_MS } = this.#parts;
    let lastThereMs = Date.now();
    for (let inARow = 0; !signal.aborted;) {
      const membership = new GroupMembership(this.#parts, options);
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
        // A member without messages was a member all the same.
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
