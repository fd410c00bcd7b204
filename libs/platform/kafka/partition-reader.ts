import type { KafkaMessage } from 'kafkajs';
import type { GlobalPosition } from '#libs/kernel/event.ts';
import type { PartitionCheckpoint } from '#libs/platform/eventstore/index.ts';

/** Kafka does not have the messages after a checkpoint. */
export class LostError extends Error {
  override readonly name = 'LostError';
}

/** Attempts to fetch a batch that continues the one before. */
const MAX_HOLES = 3;

interface MessageEnd {
  /** The offset after the message. */
  readonly next: bigint;
  /** Kafka's timestamp of the message, in milliseconds as a text; empty while unknown. */
  readonly time: string;
}

/** The messages of a batch that were accepted. */
export interface DecodedBatch {
  /**
   * The last accepted message. Refused messages do not move the checkpoint: a process with a wrong secret refuses all,
   * and one with the right secret has to read them later.
   */
  readonly last: KafkaMessage | undefined;
  readonly position: GlobalPosition;
}

/**
 * Tracks how far a member has read one partition, without gaps from a checkpoint `offset:time`. The message before the
 * offset is read again, and must have this timestamp of Kafka. Without a timestamp any message is accepted, and its
 * timestamp becomes part of the next checkpoint.
 */
export class PartitionReader {
  #next: bigint;
  #checkpoint: MessageEnd;
  /** The end of the last message that was read, which identifies the topic. */
  #seen: MessageEnd;
  /** The last message of the current batch. */
  #last: KafkaMessage | undefined;
  /** The checkpoint given or reported last. */
  #reported: string;
  /** Whether the topic is known to be the one of the checkpoint. */
  #isVerified: boolean;
  #position: GlobalPosition;
  #holes = 0;

  constructor({ checkpoint, position }: Omit<PartitionCheckpoint, 'partition'>) {
    const [offset = '0', time = ''] = checkpoint.split(':');
    this.#next = BigInt(offset);
    this.#checkpoint = this.#seen = { next: this.#next, time };
    this.#reported = checkpoint;
    this.#isVerified = this.#next === 0n;
    this.#position = position;
  }

  /** The offset after the last message that was read. */
  get next(): bigint {
    return this.#next;
  }

  get position(): GlobalPosition {
    return this.#position;
  }

  /** The offset to fetch from: of one message more while the topic is not verified. */
  get seekTo(): bigint {
    return this.#isVerified ? this.#next : this.#seen.next - 1n;
  }

  /** The topic may have been deleted and created again: reads the last message again. */
  verifyAgain(): void {
    this.#next = this.#seen.next;
    this.#isVerified = this.#next === 0n;
  }

  /** @throws LostError where Kafka has deleted the next message, or its end lies before it */
  checkBounds(low: bigint, high: bigint): void {
    if (this.seekTo >= low && this.#next <= high) return;
    throw new LostError(`offset ${this.seekTo} is not among the available offsets ${low} to ${high}`);
  }

  /**
   * Null where a batch that was fetched from `offset` continues the one before; else the offset to fetch again. An earlier
   * offset does not continue either: where the requested offset does not exist, kafkajs begins with the first message, as
   * in a topic that was deleted and created again, whose offsets mean other messages.
   *
   * @throws LostError when repeated fetches have not helped
   */
  holeBefore(offset: bigint): bigint | null {
    if (offset === this.seekTo) return null;
    if (++this.#holes > MAX_HOLES)
      throw new LostError(`Kafka does not have offset ${this.seekTo}: it returns messages from ${offset} instead`);
    return this.seekTo;
  }

  /**
   * The messages of a batch that were not read yet.
   *
   * @throws LostError where the message before the checkpoint differs
   */
  unread(messages: readonly KafkaMessage[]): readonly KafkaMessage[] {
    const following = messages.filter(({ offset }) => BigInt(offset) >= this.seekTo);
    this.#last = following.at(-1);
    const [first, ...rest] = following;
    if (this.#isVerified || first === undefined) return following;
    const { next, time } = this.#seen;
    if (BigInt(first.offset) !== this.seekTo || (time !== '' && first.timestamp !== time)) {
      throw new LostError(`the message at offset ${this.seekTo} differs: the topic was deleted and created again`);
    }
    this.#isVerified = true;
    if (time === '') this.#checkpoint = this.#seen = { next, time: first.timestamp };
    return rest;
  }

  /**
   * Call it when a batch up to `lastOffset` was delivered.
   *
   * @returns the new checkpoint; null if there is none yet, or none that differs
   */
  delivered(lastOffset: bigint, { last, position }: DecodedBatch): Omit<PartitionCheckpoint, 'partition'> | null {
    if (!this.#isVerified) return null;
    this.#holes = 0;
    if (this.#last !== undefined) this.#seen = endOf(this.#last);
    if (last !== undefined) this.#checkpoint = endOf(last);
    const checkpoint = `${this.#checkpoint.next}:${this.#checkpoint.time}`;
    if (lastOffset < this.#next && checkpoint === this.#reported) return null;
    if (lastOffset >= this.#next) this.#next = lastOffset + 1n;
    this.#position = position;
    this.#reported = checkpoint;
    return { checkpoint, position };
  }
}

const endOf = ({ offset, timestamp }: KafkaMessage): MessageEnd => ({ next: BigInt(offset) + 1n, time: timestamp });
