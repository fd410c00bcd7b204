import type { KafkaMessage } from 'kafkajs';
import type { GlobalPosition } from '#libs/kernel/event.ts';
import type { ShareMark } from '#libs/platform/eventstore/index.ts';

/** What follows a mark is not in Kafka any more. */
export class LostError extends Error {
  override readonly name = 'LostError';
}

/** A batch is asked for again so often when it does not follow on the one before. */
const MOST_HOLES = 3;

/** Behind a message of a partition. */
interface Place {
  /** The offset that follows on the message. */
  readonly next: bigint;
  /** Of the message, in milliseconds as a text; empty while that is not known. */
  readonly time: string;
}

/**
 * Where a member is in one partition: it goes on without a hole from a mark, `offset:time`, of which the message
 * before the offset is read again. That has to be the same message, told by the time that Kafka has for it; without a
 * time, any is taken for it, and gives its own to the next mark.
 */
export class PartitionReading {
  #next: bigint;
  /** Behind the last message that was taken. */
  #mark: Place;
  /** Behind the last message that was passed, by which the topic is known. */
  #seen: Place;
  /** The last message of the batch that is being dealt with. */
  #last: KafkaMessage | undefined;
  /** The mark that was given or told last. */
  #told: string;
  #isKnown: boolean;
  #position: GlobalPosition;
  #holes = 0;

  constructor({ mark, position }: Omit<ShareMark, 'share'>) {
    const [offset = '0', time = ''] = mark.split(':');
    this.#next = BigInt(offset);
    this.#mark = this.#seen = { next: this.#next, time };
    this.#told = mark;
    this.#isKnown = this.#next === 0n;
    this.#position = position;
  }

  /** The offset behind everything that was passed. */
  get next(): bigint {
    return this.#next;
  }

  get position(): GlobalPosition {
    return this.#position;
  }

  /** Where to read from: while the topic is not known to be the same, one message before. */
  get seekTo(): bigint {
    return this.#isKnown ? this.#next : this.#seen.next - 1n;
  }

  /** The topic may be another one by now: the last message of it that was passed is to be read again. */
  doubt(): void {
    this.#next = this.#seen.next;
    this.#isKnown = this.#next === 0n;
  }

  /** @throws LostError where Kafka has deleted what follows, or has not got so far */
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
    if (++this.#holes > MOST_HOLES)
      throw new LostError(`Kafka has not got offset ${this.seekTo}: it gives what follows ${offset} instead`);
    return this.seekTo;
  }

  /**
   * Those of a batch that were not passed yet.
   *
   * @throws LostError where the message before the mark is not the one that it was
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
    if (time === '') this.#mark = this.#seen = { next, time: first.timestamp };
    return rest;
  }

  /**
   * A batch up to `lastOffset` was dealt with.
   *
   * @param news.last the last message that was taken. Those that are refused do not move the mark: whoever has the wrong
   *   secret refuses all, and they must be there still for the one with the right secret
   * @returns the mark behind it; null where there is none yet, or nothing has changed
   */
  passed(
    lastOffset: bigint,
    { last, position }: { readonly last: KafkaMessage | undefined; readonly position: GlobalPosition },
  ): { readonly mark: string; readonly position: GlobalPosition } | null {
    if (!this.#isKnown) return null;
    this.#holes = 0;
    if (this.#last !== undefined) this.#seen = behind(this.#last);
    if (last !== undefined) this.#mark = behind(last);
    const mark = `${this.#mark.next}:${this.#mark.time}`;
    if (lastOffset < this.#next && mark === this.#told) return null;
    if (lastOffset >= this.#next) this.#next = lastOffset + 1n;
    this.#position = position;
    this.#told = mark;
    return { mark, position };
  }
}

const behind = ({ offset, timestamp }: KafkaMessage): Place => ({ next: BigInt(offset) + 1n, time: timestamp });
