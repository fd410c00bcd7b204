import type { Redis } from 'ioredis';

import { Fault } from '#libs/kernel/faults.ts';
import {
  bytesOf,
  textsOf,
  LoopBatches,
  type LoopBatchesOptions,
  type RedisClient,
  type Values,
} from '#libs/platform/redis/index.ts';

import { decodeDocument, type Document } from './document.ts';
import { projectionKeys, type ProjectionKeys, type ReadModelName } from './read-model.keys.ts';

/** A read that waits for the values of its batch, and finds its own in them. */
interface Waiting {
  settle(values: Values): void;
  reject(error: unknown): void;
}

/** Reads of one iteration of the event loop, from one node. */
interface Batch {
  isComplete?: Promise<boolean>;
  /** Begins with the completeness mark. */
  readonly keys: [string, ...string[]];
  /** Places of keys of single reads, so that reads of one key share it. */
  readonly places: Map<string, number>;
  readonly waiting: Waiting[];
}

/** Keys in one `MGET`: a longer reply would delay the others. */
const MAX_KEYS = 512;
const MARK = Buffer.from('1');

/**
 * Reads values of one category, and whether its read models held the whole log at the same moment: then a missing value
 * does not exist. While they do not (a first start on an old log, an emptied Redis, a rebuild, a new version), it may be
 * written later, and a list may lack entries.
 *
 * Reads of one iteration of the event loop go to Redis as one `MGET` (in a cluster, one for each node), which makes many small
 * reads cheap. One server answers it at one moment. In a cluster the completeness mark may be on another node, so the
 * mark of the same build is read before the values and again after them. Deleting read models removes the mark first, and
 * a new build has a new name, so the mark existed during the whole interval.
 *
 * All methods throw `Fault` `store_unavailable`.
 */
export class CategoryReader {
  readonly name: ReadModelName;
  readonly #redis: RedisClient;
  readonly #keys: ProjectionKeys;
  /** By node, so that a slow node delays only its own reads; null on one server. */
  readonly #batches: LoopBatches<Redis | null, Batch>;
  /** Sent after everything else of the iteration. */
  readonly #lastBatches: LoopBatches<Redis | null, Batch>;
  /** The build that was complete when the mark was last read; in a cluster only. */
  #seen: string | null = null;

  constructor(redis: RedisClient, name: ReadModelName) {
    this.name = name;
    this.#redis = redis;
    this.#keys = projectionKeys(name);
    const options: LoopBatchesOptions<Redis | null, Batch> = {
      create: () => ({ keys: [this.#keys.complete], places: new Map(), waiting: [] }),
      isFull: (batch, more) => batch.keys.length + more > MAX_KEYS,
      send: (batch) => this.#send(batch),
    };
    this.#batches = new LoopBatches(redis, { ...options, place: 'first' });
    this.#lastBatches = new LoopBatches(redis, { ...options, place: 'last' });
  }

  document(key: string): Promise<{ readonly document: Document | null; readonly isComplete: boolean }> {
    return this.#one(key, (value, isComplete) => ({ document: value && decodeDocument(value), isComplete }));
  }

  value(key: string): Promise<{ readonly value: Buffer | null; readonly isComplete: boolean }> {
    return this.#one(key, (value, isComplete) => ({ value, isComplete }));
  }

  /** The same, on one server read after everything that is sent at the end of the same iteration of the event loop. */
  valueAtLast(key: string): ReturnType<CategoryReader['value']> {
    return this.#one(key, (value, isComplete) => ({ value, isComplete }), this.#lastBatches);
  }

  /** The documents of the keys, in their order; null for missing ones. */
  async values<T>(keys: readonly string[], decoded: (value: Buffer) => T): Promise<(T | null)[]> {
    if (keys.length === 0) return [];
    const decode = (value: Buffer | null): T | null => value && decoded(value);
    if (!this.#redis.isOneServer) return bytesOf(await this.#redis.values(keys)).map(decode);
    return new Promise((resolve, reject) => {
      const batch = this.#batches.of(null, keys.length);
      const from = batch.keys.length;
      batch.keys.push(...keys);
      const settle: Waiting['settle'] = (values) =>
        resolve(values.slice(from, from + keys.length).map((value) => decode(orThrow(value))));
      batch.waiting.push({ settle, reject });
    });
  }

  /**
   * Whether the read models hold the whole log. One read for all callers of an iteration of the event loop, sent before
   * everything else that `atEndOfIteration` sends in it. In a cluster, the first call answers false.
   */
  isComplete(): Promise<boolean> {
    // Apart from all values: in a cluster, reading them twice does not help callers that read other keys meanwhile.
    const batch = this.#batches.of(null, 0);
    batch.isComplete ??= new Promise((resolve, reject) => {
      batch.waiting.push({ settle: ([complete]) => resolve(Boolean(complete)), reject });
    });
    return batch.isComplete;
  }

  /**
   * Runs a read of lists, which cannot show by themselves whether they lack entries.
   *
   * @throws `Fault` `not_caught_up` (503) when the read models were not complete from its beginning to its end
   */
  async whileComplete<T>(read: () => Promise<T>): Promise<T> {
    const build = await this.#completeBuild();
    if (build !== null) {
      const result = await read();
      if ((await this.#completeBuild()) === build) return result;
    }
    throw new Fault('not_caught_up', 'The read models are being built', { retryAfterSeconds: 2 });
  }

  // Without intermediate promises and arrays: every read of an entity passes through here.
  #one<T>(key: string, take: (value: Buffer | null, isComplete: boolean) => T, batches = this.#batches): Promise<T> {
    return new Promise((resolve, reject) => {
      const { keys, places, waiting } = batches.of(this.#redis.isOneServer ? null : this.#redis.nodeOf(key), 1);
      let index = places.get(key);
      if (index === undefined) places.set(key, (index = keys.push(key) - 1));
      const at = index;
      const settle: Waiting['settle'] = (values) => resolve(take(orThrow(values[at]), Boolean(values[0])));
      waiting.push({ settle, reject });
    });
  }

  #send({ keys, waiting }: Batch): void {
    this.#read(keys).then(
      (values) => {
        for (const one of waiting) settle(one, values);
      },
      (error: unknown) => {
        for (const { reject } of waiting) reject(error);
      },
    );
  }

  /**
   * @param keys begin with the key of the completeness mark
   * @returns the values in their order; in place of the mark, null unless all others are of complete read models. With
   *   the mark alone: whether the read models were complete before and still are
   */
  async #read(keys: readonly [string, ...string[]]): Promise<Values> {
    if (this.#redis.isOneServer) return this.#redis.values(keys);
    const [, ...others] = keys;
    let before = this.#seen;
    for (let attempt = 1; ; attempt++) {
      const values = others.length === 0 ? [] : await this.#redis.values(others);
      const after = await this.#completeBuild();
      if (after !== null && after === before) return [MARK, ...values];
      // At the first read of a build, the values may be older than its completion.
      if (after === null || attempt === 2 || others.length === 0) return [null, ...values];
      before = after;
    }
  }

  async #completeBuild(): Promise<string | null> {
    const [build = null, complete = null] = textsOf(await this.#redis.values([this.#keys.build, this.#keys.complete]));
    this.#seen = complete === null ? null : build;
    return this.#seen;
  }
}

/** A document that cannot be decoded fails its own read only, not the others of the iteration. */
function settle(one: Waiting, values: Values): void {
  try {
    one.settle(values);
  } catch (error) {
    one.reject(error);
  }
}

function orThrow(value: Buffer | Error | null | undefined): Buffer | null {
  if (value instanceof Error) throw value;
  return value ?? null;
}
