import { FRAME_FLAG, type LiveValue } from './frames.ts';

import { LiveFrame } from './live-frame.ts';
import { LOSSY_BYTES, type Subscriber } from './subscriber.ts';

export interface ValueCatchUpParts {
  current(): Promise<readonly LiveValue[]>;
  /** The channel's head, which shows whether events arrived during a read. */
  head(): number;
  onFailure(error: unknown): void;
}

interface Round {
  readonly subscribers: ReadonlySet<Subscriber>;
  /** Live values since the read began, which the read may lack. */
  arrived: LiveFrame[];
}

/** A busy channel, in which events arrive during every read, must not delay its subscribers forever. */
const MAX_READS = 5;

/**
 * Sends current values, which are not in the log, to new subscribers and to those that missed values. One read of the
 * store serves all subscribers that wait for it.
 *
 * Guarantees: every newer value follows the current ones, in order. Some may be duplicates, which clients ignore: a
 * delta whose offset does not fit, a number that is not higher.
 */
export class ValueCatchUp {
  readonly #parts: ValueCatchUpParts;
  #waiting = new Set<Subscriber>();
  #round: Round | null = null;

  constructor(parts: ValueCatchUpParts) {
    this.#parts = parts;
  }

  /** The subscriber receives no other values before: see `lacksValues`. */
  request(subscriber: Subscriber): void {
    if (!wantsValues(subscriber.include)) return;
    subscriber.lacksValues = true;
    this.#waiting.add(subscriber);
    if (this.#round === null) void this.#run();
  }

  /** As `request`, once the subscriber's unsent bytes are sent. */
  requestAfterDraining(subscriber: Subscriber): void {
    subscriber.lacksValues = true;
    void subscriber.drained().then(() => subscriber.isOpen && this.request(subscriber));
  }

  /** Must be called with every value that arrives live. */
  observe(frame: LiveFrame): void {
    this.#round?.arrived.push(frame);
  }

  async #run(): Promise<void> {
    while (this.#waiting.size > 0) {
      const round: Round = { subscribers: this.#waiting, arrived: [] };
      this.#waiting = new Set();
      this.#round = round;
      try {
        const current = await this.#read(round);
        for (const subscriber of round.subscribers) this.#write(subscriber, [...current, ...round.arrived]);
      } catch (error) {
        // The next sweep requests the values again.
        this.#parts.onFailure(error);
      }
      this.#round = null;
    }
  }

  /** A value must not follow the event that ends it, so values read before an event that arrived meanwhile are dropped. */
  async #read(round: Round): Promise<LiveFrame[]> {
    const { current, head } = this.#parts;
    for (let reads = 1; ; reads++) {
      const before = head();
      round.arrived = [];
      const values = await current();
      if (head() !== before && reads < MAX_READS) continue;
      return values.map(({ flags, json }) => new LiveFrame(null, flags, json));
    }
  }

  #write(subscriber: Subscriber, frames: readonly LiveFrame[]): void {
    if (!subscriber.isOpen) return;
    if (subscriber.unsentBytes > LOSSY_BYTES) return this.requestAfterDraining(subscriber);
    const bytes = subscriber.encode(frames);
    if (bytes !== null) subscriber.write(bytes);
    subscriber.allowanceBytes = bytes?.length ?? 0;
    subscriber.lacksValues = false;
  }
}

export function wantsValues(include: number): boolean {
  return (include & (FRAME_FLAG.incomplete | FRAME_FLAG.ephemeral)) !== 0;
}
