import type { KafkaMessage } from 'kafkajs';
import type { GlobalPosition } from '#libs/kernel/event.ts';
import type { PartitionCheckpoint } from '#libs/platform/eventstore/index.ts';

/** The messages after a checkpoint are not in Kafka any more. */
export class LostError extends Error {
  override readonly name = 'LostError';
}

/** Attempts to fetch a batch that follows the one before. */
const MAX_HOLES = 3;

/** The end of a message in a partition. */
interface Place {
  /** The offset after the message. */
  readonly next: bigint;
  /** Kafka's timestamp of the message, in milliseconds as a text; empty while unknown. */
  readonly time: string;
}

/**
 * Where a member is in one partition: it goes on without a hole from a checkpoint, `offset:time`, of which the message
 * before the offset is read again. That has to be the same message, told by the time that Kafka has for it; without a
 * time, any is taken for it, and gives its own to the next checkpoint.
 */
export class PartitionReading {
  #next: bigint;
  /** The end of the last message that was accepted. */
  #checkpoint: Place;
  /** The end of the last message that was read, by which the topic is recognized. */
  #seen: Place;
  /** The last message of the batch in progress. */
  #last: KafkaMessage | undefined;
  /** The checkpoint that was given or reported last. */
  #reported: string;
  #isKnown: boolean;
  #position: GlobalPosition;
  #holes = 0;

  constructor({ checkpoint, position }: Omit<PartitionCheckpoint, 'partition'>) {
    const [offset = '0', time = ''] = checkpoint.split(':');
    this.#next = BigInt(offset);
    this.#checkpoint = this.#seen = { next: this.#next, time };
    this.#reported = checkpoint;
    this.#isKnown = this.#next === 0n;
    this.#position = position;
  }

  /** The offset after everything that was read. */
  get next(): bigint {
    return this.#next;
  }

  get position(): GlobalPosition {
    return this.#position;
  }

  /** Where to read from: one message earlier while the topic is not known to be the same. */
  get seekTo(): bigint {
    return this.#isKnown ? this.#next : this.#seen.next - 1n;
  }

  /** The topic may have been made anew: the last message that was read has to be read again. */
  doubt(): void {
    this.#next = this.#seen.next;
    this.#isKnown = this.#next === 0n;
  }

  /** @throws LostError where Kafka has deleted what follows, or its end lies before it */
  checkBounds(low: bigint, high: bigint): void {
    if (this.seekTo >= low && this.#next <= high) return;
    throw new LostError(`offset ${this.seekTo} is not within ${low} and ${high}, which is what there is`);
  }

  /**
   * Null where a batch that was fetched from `offset` follows on what was passed; else where to fetch it from. One from
   * before that follows no more than one from behind: kafkajs begins anew where there is no such offset, as in a topic
   * that was made anew, and offsets that were passed in the one before say nothing of this one.
   *
   * @throws LostError when that has not helped
   */
  holeBefore(offset: bigint): bigint | null {
    if (offset === this.seekTo) return null;
    if (++this.#holes > MAX_HOLES)
      throw new LostError(`Kafka has not got offset ${this.seekTo}: it gives what follows ${offset} instead`);
    return this.seekTo;
  }

  /**
   * The messages of a batch that were not read yet.
   *
   * @throws LostError where the message before the checkpoint is not the one that it was
   */
  fresh(messages: readonly KafkaMessage[]): readonly KafkaMessage[] {
    const following = messages.filter(({ offset }) => BigInt(offset) >= this.seekTo);
    this.#last = following.at(-1);
    const [first, ...rest] = following;
    if (this.#isKnown || first === undefined) return following;
    const { next, time } = this.#seen;
    if (BigInt(first.offset) !== this.seekTo || (time !== '' && first.timestamp !== time)) {
      throw new LostError(`the message at offset ${this.seekTo} is not the one that it was: the topic is another one`);
    }
    this.#isKnown = true;
    if (time === '') this.#checkpoint = this.#seen = { next, time: first.timestamp };
    return rest;
  }

  /**
   * A batch up to `lastOffset` was delivered.
   *
   * @param news.last the last message that was taken. Those that are refused do not move the checkpoint: whoever has the wrong
   *   secret refuses all, and they must be there still for the one with the right secret
   * @returns the checkpoint behind it; null where there is none yet, or nothing has changed
   */
  passed(
    lastOffset: bigint,
    { last, position }: { readonly last: KafkaMessage | undefined; readonly position: GlobalPosition },
  ): { readonly checkpoint: string; readonly position: GlobalPosition } | null {
    if (!this.#isKnown) return null;
    this.#holes = 0;
    if (this.#last !== undefined) this.#seen = behind(this.#last);
    if (last !== undefined) this.#checkpoint = behind(last);
    const checkpoint = `${this.#checkpoint.next}:${this.#checkpoint.time}`;
    if (lastOffset < this.#next && checkpoint === this.#reported) return null;
    if (lastOffset >= this.#next) this.#next = lastOffset + 1n;
    this.#position = position;
    this.#reported = checkpoint;
    return { checkpoint, position };
  }
}

const behind = ({ offset, timestamp }: KafkaMessage): Place => ({ next: BigInt(offset) + 1n, time: timestamp });
