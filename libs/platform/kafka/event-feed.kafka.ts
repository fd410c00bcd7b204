import { Fault } from '#libs/kernel/faults.ts';
import type { GlobalPosition } from '#libs/kernel/event.ts';
import {
  checkFeedOptions,
  comparePositions,
  type FeedItem,
  type FeedOptions,
  type PartitionedFeed,
  type PartitionEnd,
  type ReadCheckpoints,
} from '#libs/platform/eventstore/index.ts';
import { backoffMs, pause } from '#libs/platform/lifecycle/index.ts';
import { kafkaFault } from './kafka-errors.ts';
import { LostError } from './partition-reader.ts';
import { KafkaMembership, type KafkaEventFeedParts } from './kafka-membership.ts';

const LOST_AFTER_MS = 15_000;

/**
 * {@link PartitionedFeed} on the topic that a relay fills; Kafka's consumer group assigns its partitions.
 *
 * The position of a partition is the greatest of its events and watermarks: a relay sends an event for the first time
 * after Kafka has acknowledged all events before it, so all events of the partition up to that position precede it.
 *
 * A checkpoint is the next offset, and Kafka's timestamp of the message before it. The feed reads that message again: if it
 * differs, the topic was deleted and created again, and its offsets have another meaning. The feed does the same with the
 * last message that it read, after a gap between fetches. It is `lost` then, and when Kafka has deleted the messages after
 * the checkpoint, when the number of partitions has changed, and when Kafka stays unavailable.
 *
 * Refused messages (see `Refusal`) are skipped and reported.
 *
 * Omissions: the checkpoints of `ends()` lack the timestamp until their partition is read once.
 */
export class KafkaEventFeed implements PartitionedFeed {
  readonly #parts: KafkaEventFeedParts;
  /** Kafka has refused to list the ends, and this was reported. */
  #isRefused = false;

  constructor(parts: KafkaEventFeedParts) {
    this.#parts = parts;
  }

  async ends(upTo: GlobalPosition | null = null): Promise<readonly PartitionEnd[] | null> {
    const { kafka, onInterruption, published, topic } = this.#parts;
    try {
      if (upTo !== null && published !== undefined) {
        const position = await published();
        if (position === null || comparePositions(position, upTo) < 0) return null;
      }
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
    const { lostAfterMs = LOST_AFTER_MS } = this.#parts;
    let availableAtMs = Date.now();
    for (let failures = 0; !signal.aborted;) {
      const membership = new KafkaMembership(this.#parts, options);
      try {
        membership.join();
        for (;;) {
          const item = await membership.next();
          if (item === null) return;
          failures = 0;
          yield item;
          availableAtMs = Date.now();
        }
      } catch (error) {
        if (error instanceof LostError) {
          yield { kind: 'lost', reason: error.message };
          return;
        }
        // Fetches may have succeeded without messages.
        if (failures === 0) availableAtMs = Math.max(availableAtMs, membership.fetchedAtMs);
        this.#parts.onInterruption?.(kafkaFault(error), ++failures);
      } finally {
        await membership.leave();
      }
      if (Date.now() - availableAtMs > lostAfterMs) {
        yield { kind: 'lost', reason: 'Kafka has been unavailable for too long' };
        return;
      }
      await pause(backoffMs(failures, { maxMs: 2_000 }), signal);
    }
  }
}
