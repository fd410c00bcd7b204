import type { Redis } from 'ioredis';

import type { RedisClient } from './redis-client.ts';

/** The place of a send among the others of its iteration. */
type Place = 'first' | 'middle' | 'last';

type Send = () => void;

/** Sends of this iteration of the event loop, by client. */
const sendsOf = new WeakMap<RedisClient, Record<Place, Send[]>>();

/**
 * Calls `send` at the end of this iteration of the event loop. All commands of such calls go out in one write to each node,
 * because a write is a system call and costs more than most commands. They keep the order of the calls within each place.
 *
 * @param send sends commands before it returns, and does not throw
 */
export function atEndOfIteration(redis: RedisClient, send: Send, { place = 'middle' as Place } = {}): void {
  const waiting = sendsOf.get(redis);
  if (waiting !== undefined) {
    waiting[place].push(send);
    return;
  }
  const sends: Record<Place, Send[]> = { first: [], middle: [], last: [] };
  sends[place].push(send);
  sendsOf.set(redis, sends);
  setImmediate(() => {
    sendsOf.delete(redis);
    // Before the first connection there is no stream; the commands then fail.
    const streams = redis.nodes().map((node): Redis['stream'] | undefined => node.stream);
    for (const stream of streams) stream?.cork();
    for (const one of [...sends.first, ...sends.middle, ...sends.last]) one();
    for (const stream of streams) stream?.uncork();
  });
}

export interface LoopBatchesOptions<Key, Batch> {
  create(key: Key): Batch;
  /** As in {@link atEndOfIteration}. */
  send(batch: Batch, key: Key): void;
  /** Whether `more` items do not fit: another batch begins then. */
  isFull?(batch: Batch, more: number): boolean;
  readonly place?: Place;
}

/** Collects the requests of one iteration of the event loop in batches by key, and sends them {@link atEndOfIteration}. */
export class LoopBatches<Key, Batch> {
  readonly #redis: RedisClient;
  readonly #options: LoopBatchesOptions<Key, Batch>;
  /** The newest batch of each key. */
  readonly #batches = new Map<Key, Batch>();
  readonly #unsent = new Set<Batch>();

  constructor(redis: RedisClient, options: LoopBatchesOptions<Key, Batch>) {
    this.#redis = redis;
    this.#options = options;
  }

  /** The batch that `more` items for the key join. */
  of(key: Key, more = 1): Batch {
    const { create, isFull, place } = this.#options;
    const batch = this.#batches.get(key);
    if (batch !== undefined && isFull?.(batch, more) !== true) return batch;
    const begun = create(key);
    this.#batches.set(key, begun);
    this.#unsent.add(begun);
    atEndOfIteration(this.#redis, () => this.#send(key, begun), place && { place });
    return begun;
  }

  /** Sends the newest batch of the key now, if there is one. */
  flush(key: Key): void {
    const batch = this.#batches.get(key);
    if (batch !== undefined) this.#send(key, batch);
  }

  #send(key: Key, batch: Batch): void {
    if (!this.#unsent.delete(batch)) return;
    if (this.#batches.get(key) === batch) this.#batches.delete(key);
    this.#options.send(batch, key);
  }
}
