import type { FeedItem, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { HEARTBEAT_MS } from './group-member.ts';

type Events = readonly [StoredEvent, ...StoredEvent[]];

interface Waiting {
  readonly events: readonly StoredEvent[];
  readonly done: PromiseWithResolvers<void>;
}

/**
 * Connects kafkajs, which pushes, with a feed, which is pulled: asking for the next item acknowledges the one before.
 *
 * Batches of different partitions may wait together; they become one item, up to `maxBatch`.
 */
export class DeliveryQueue {
  readonly #maxBatch: number;
  readonly #offers: Waiting[] = [];
  readonly #items: FeedItem[] = [];
  #taken: readonly Waiting[] = [];
  #closed = false;
  #failure: { readonly error: unknown } | null = null;
  #change = Promise.withResolvers<void>();

  constructor(maxBatch: number) {
    this.#maxBatch = maxBatch;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /**
   * Waits until the events are acknowledged, in pieces if they are too many, and calls `heartbeat` meanwhile, so that a
   * slow consumer remains a member.
   *
   * @returns false if they will not be acknowledged any more
   * @throws what `heartbeat` throws, which announces a rebalance
   */
  async deliver(events: readonly StoredEvent[], heartbeat: () => Promise<void>): Promise<boolean> {
    for (let start = 0; start < events.length && !this.#closed; start += this.#maxBatch) {
      const waiting: Waiting = {
        events: events.slice(start, start + this.#maxBatch),
        done: Promise.withResolvers<void>(),
      };
      this.#offers.push(waiting);
      this.#changed();
      try {
        await settled(waiting.done.promise, heartbeat);
      } finally {
        const at = this.#offers.indexOf(waiting);
        if (at >= 0) this.#offers.splice(at, 1);
      }
    }
    return !this.#closed;
  }

  /** Adds an item that is not a batch: after the acknowledged batches, and before the waiting ones. */
  push(item: FeedItem): void {
    this.#items.push(item);
    this.#changed();
  }

  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#changed();
  }

  close(): void {
    this.#closed = true;
    for (const { done } of [...this.#offers, ...this.#taken]) done.resolve();
    this.#changed();
  }

  /** Null when closed. @throws the error of `fail` */
  async next(): Promise<FeedItem | null> {
    for (const { done } of this.#taken) done.resolve();
    this.#taken = [];
    for (;;) {
      if (this.#closed) return null;
      if (this.#failure !== null) throw this.#failure.error;
      const item = this.#items.shift();
      if (item !== undefined) return item;
      const events = this.#take();
      if (events !== null) return { kind: 'events', events };
      await this.#change.promise;
    }
  }

  #take(): Events | null {
    const taken: Waiting[] = [];
    for (let size = 0; this.#offers.length > 0;) {
      size += this.#offers[0]?.events.length ?? 0;
      if (taken.length > 0 && size > this.#maxBatch) break;
      taken.push(...this.#offers.splice(0, 1));
    }
    this.#taken = taken;
    const [first, ...rest] = taken.flatMap(({ events }) => events);
    return first === undefined ? null : [first, ...rest];
  }

  #changed(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers<void>();
  }
}

/** Waits for `promise` and calls `heartbeat` as often as a member must. */
export async function settled<T>(promise: Promise<T>, heartbeat: () => Promise<void>): Promise<T> {
  for (;;) {
    const { promise: late, resolve } = Promise.withResolvers<typeof LATE>();
    const timer = setTimeout(resolve, HEARTBEAT_MS, LATE);
    const first = await Promise.race([promise, late]).finally(() => clearTimeout(timer));
    if (first !== LATE) return first;
    await heartbeat();
  }
}

const LATE = Symbol('late');
