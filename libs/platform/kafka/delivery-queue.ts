import type { FeedItem, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { WakeUp, within } from '#libs/platform/lifecycle/index.ts';
import { HEARTBEAT_MS } from './connection.ts';

type Events = readonly [StoredEvent, ...StoredEvent[]];

interface Waiting {
  readonly events: readonly StoredEvent[];
  readonly done: PromiseWithResolvers<void>;
}

/**
 * Connects kafkajs, which pushes batches, with a feed, from which the consumer pulls items: a call of `next` acknowledges
 * the item before. Waiting batches of different partitions become one item, up to `maxBatch` events.
 */
export class DeliveryQueue {
  readonly #maxBatch: number;
  readonly #offers: Waiting[] = [];
  readonly #items: FeedItem[] = [];
  #taken: readonly Waiting[] = [];
  #closed = false;
  #failure: { readonly error: unknown } | null = null;
  readonly #change = new WakeUp();

  constructor(maxBatch: number) {
    this.#maxBatch = maxBatch;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /**
   * Delivers the events, in several items if they are too many, and waits until they are acknowledged. Calls `heartbeat`
   * meanwhile, so that a slow consumer remains a member.
   *
   * @returns false if the queue was closed before
   * @throws the error of `heartbeat`, which announces a rebalance
   */
  async deliver(events: readonly StoredEvent[], heartbeat: () => Promise<void>): Promise<boolean> {
    for (let start = 0; start < events.length && !this.#closed; start += this.#maxBatch) {
      const waiting: Waiting = {
        events: events.slice(start, start + this.#maxBatch),
        done: Promise.withResolvers<void>(),
      };
      this.#offers.push(waiting);
      this.#change.wake();
      try {
        await settled(waiting.done.promise, heartbeat);
      } finally {
        const at = this.#offers.indexOf(waiting);
        if (at >= 0) this.#offers.splice(at, 1);
      }
    }
    return !this.#closed;
  }

  /** Adds an item without events, which precedes the waiting batches. */
  push(item: FeedItem): void {
    this.#items.push(item);
    this.#change.wake();
  }

  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#change.wake();
  }

  close(): void {
    this.#closed = true;
    for (const { done } of [...this.#offers, ...this.#taken]) done.resolve();
    this.#change.wake();
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
      await this.#change.sleep();
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
}

/** Waits for `promise`, and calls `heartbeat` at the interval that members must keep. */
export async function settled<T>(promise: Promise<T>, heartbeat: () => Promise<void>): Promise<T> {
  for (;;) {
    try {
      return await within(HEARTBEAT_MS, promise, () => new HeartbeatDue());
    } catch (error) {
      if (!(error instanceof HeartbeatDue)) throw error;
      await heartbeat();
    }
  }
}

class HeartbeatDue extends Error {}
