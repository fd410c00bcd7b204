import type { Redis } from 'ioredis';

import type { RedisClient } from './redis-client.ts';

/** Sends of this iteration of the event loop, by client. */
const sendsOf = new WeakMap<RedisClient, (() => void)[]>();

/**
 * Calls `send` at the end of this iteration of the event loop. All commands of such calls go out in one write to each node,
 * because a write is a system call and costs more than most commands. They keep the order of the calls, except that
 * `first` ones precede the others.
 *
 * @param send sends commands before it returns, and does not throw
 */
export function atEndOfIteration(redis: RedisClient, send: () => void, { first = false } = {}): void {
  const waiting = sendsOf.get(redis);
  if (waiting !== undefined) {
    if (first) waiting.unshift(send);
    else waiting.push(send);
    return;
  }
  const sends = [send];
  sendsOf.set(redis, sends);
  setImmediate(() => {
    sendsOf.delete(redis);
    // Before the first connection there is no stream; the commands then fail.
    const streams = redis.nodes().map((node): Redis['stream'] | undefined => node.stream);
    for (const stream of streams) stream?.cork();
    for (const one of sends) one();
    for (const stream of streams) stream?.uncork();
  });
}

export interface LoopBatchesOptions<Key, Batch> {
  create(key: Key): Batch;
  /** As in {@link atEndOfIteration}. */
  send(batch: Batch, key: Key): void;
  /** Whether `more` items do not fit: the batch is then sent at once, and another one begins. */
  isFull?(batch: Batch, more: number): boolean;
  readonly first?: boolean;
}

/** Collects the requests of one iteration of the event loop in batches by key, and sends them {@link atEndOfIteration}. */
export class LoopBatches<Key, Batch> {
  readonly #redis: RedisClient;
  readonly #options: LoopBatchesOptions<Key, Batch>;
  readonly #batches = new Map<Key, Batch>();

  constructor(redis: RedisClient, options: LoopBatchesOptions<Key, Batch>) {
    this.#redis = redis;
    this.#options = options;
  }

  /** The batch that `more` items for the key join. */
  of(key: Key, more = 1): Batch {
    const { create, isFull, first = false } = this.#options;
    const batch = this.#batches.get(key);
    if (batch !== undefined && isFull?.(batch, more) !== true) return batch;
    if (batch !== undefined) this.flush(key);
    const begun = create(key);
    this.#batches.set(key, begun);
    const flush = (): void => void (this.#batches.get(key) === begun && this.flush(key));
    atEndOfIteration(this.#redis, flush, { first });
    return begun;
  }

  /** Sends the batch of the key now, if there is one. */
  flush(key: Key): void {
    const batch = this.#batches.get(key);
    if (batch === undefined) return;
    this.#batches.delete(key);
    this.#options.send(batch, key);
  }
}
