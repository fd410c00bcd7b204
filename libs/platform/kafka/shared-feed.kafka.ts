import { Fault } from '#libs/kernel/faults.ts';
import { checkFeedOptions } from '#libs/platform/eventstore/index.ts';
import type { SharedFeed, SharedFeedItem, SharedFeedOptions, ShareEnd } from '#libs/platform/eventstore/index.ts';
import { backoffMs, pause } from '#libs/platform/lifecycle/index.ts';
import { kafkaFault } from './kafka-errors.ts';
import { LostError } from './partition-reading.ts';
import { SharedMembership } from './shared-membership.ts';
import type { KafkaSharedFeedParts } from './shared-membership.ts';

const DEFAULT_PATIENCE_MS = 15_000;

/**
 * {@link SharedFeed} on the topic that a relay fills: a share is a partition, and who gets which is for Kafka's
 * consumer group to say.
 *
 * The position of a share is the greatest that an event or a watermark in it had: a relay sends an event for the first
 * time only after Kafka has acknowledged all before it, so what lies before one in its partition is everything up to
 * it that belongs there.
 *
 * A mark is the offset to go on from, and the time that Kafka has for the message before it. That message is read
 * again, and has to be the same: else the topic is another one by now, where offsets mean something else. So it is with
 * the last message that was read, after a while without a fetch. `lost` is said of that, of what Kafka has deleted, of
 * partitions that are not those that the marks speak of, and of a Kafka that stays away.
 *
 * Messages that are none of ours, not signed with our secret, or not in their place are dropped and counted.
 *
 * Omissions: a mark of `ends()` has no such time before its partition was read once.
 */
export class KafkaSharedFeed implements SharedFeed {
  readonly #parts: KafkaSharedFeedParts;
  /** Asking for the ends was refused, and that was told. */
  #isRefused = false;

  constructor(parts: KafkaSharedFeedParts) {
    this.#parts = parts;
  }

  async ends(): Promise<readonly ShareEnd[] | null> {
    const { kafka, onInterruption, topic } = this.#parts;
    try {
      const partitions = await kafka.withAdmin((admin) => admin.fetchTopicOffsets(topic));
      this.#isRefused = false;
      // Without a message there is none to know the topic by. A relay soon writes to every partition.
      if (partitions.length === 0 || partitions.some(({ low, high }) => low === high)) return null;
      return partitions.map(({ partition, high }) => ({ share: `${partition}`, mark: `${high}:` }));
    } catch (error) {
      // That Kafka is away, or the topic not made yet, passes by itself. What is forbidden waits for a person.
      if (!(error instanceof Fault) && !this.#isRefused) {
        this.#isRefused = true;
        onInterruption?.(error, 1);
      }
      return null;
    }
  }

  async *subscribe(options: SharedFeedOptions): AsyncGenerator<SharedFeedItem, void, undefined> {
    checkFeedOptions(options);
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
