import type { Redis } from 'ioredis';

import { bytesOf, TurnBatches } from '#libs/platform/redis/index.ts';
import type { RedisClient } from '#libs/platform/redis/index.ts';

import { decodeDocument } from './document.ts';
import type { Document } from './document.ts';
import { MarkedReads } from './marked-reads.ts';
import { projectionKeys } from './read-model.keys.ts';
import type { ReadModelName } from './read-model.keys.ts';

/** A stored document, and whether the read models of its category held the whole log at the same moment. */
export interface FoundDocument {
  readonly document: Document | null;
  readonly isComplete: boolean;
}

type Values = readonly (Buffer | null | Error)[];

/** A read that waits for the values of its batch, and finds its own in them. */
interface Waiting {
  settle(values: Values): void;
  reject(error: unknown): void;
}

/** Reads of one turn of the event loop, from one node. */
interface Batch {
  isComplete?: Promise<boolean>;
  /** Begins with the mark of completeness. */
  readonly keys: [string, ...string[]];
  readonly waiting: Waiting[];
}

/** Keys in one `MGET`: a longer reply would delay the others. */
const MAX_KEYS = 512;

/**
 * Reads stored documents of one category as bytes. Reads of one turn of the event loop go to Redis as one `MGET` (in a
 * cluster, one for each node), which makes many small reads cheap.
 *
 * @throws `Fault` `store_unavailable`
 */
export class DocumentReader {
  readonly #redis: RedisClient;
  readonly #marked: MarkedReads;
  /** By node, so that a slow node delays only its own reads; null on one server. */
  readonly #batches: TurnBatches<Redis | null, Batch>;

  constructor(redis: RedisClient, name: ReadModelName) {
    const keys = projectionKeys(name);
    this.#redis = redis;
    this.#marked = new MarkedReads(redis, keys);
    this.#batches = new TurnBatches(redis, {
      first: true,
      create: () => ({ keys: [keys.complete], waiting: [] }),
      isFull: (batch, more) => batch.keys.length + more > MAX_KEYS,
      send: (batch) => this.#send(batch),
    });
  }

  // Without intermediate promises and arrays: every read of an entity passes through here.
  one(key: string): Promise<FoundDocument> {
    return new Promise((resolve, reject) => {
      const { keys, waiting } = this.#batches.of(this.#redis.isOneServer ? null : this.#redis.nodeOf(key), 1);
      const from = keys.push(key) - 1;
      const settle: Waiting['settle'] = (values) =>
        resolve({ document: decoded(values[from]), isComplete: Boolean(values[0]) });
      waiting.push({ settle, reject });
    });
  }

  /**
   * Whether the read models hold the whole log. One read for all callers of a turn of the event loop, sent before
   * everything else that `atEndOfTurn` sends in it.
   */
  isComplete(): Promise<boolean> {
    // Apart from all values: in a cluster, reading them twice does not help callers that read other keys meanwhile.
    const batch = this.#batches.of(null, 0);
    batch.isComplete ??= new Promise((resolve, reject) => {
      batch.waiting.push({ settle: ([complete]) => resolve(Boolean(complete)), reject });
    });
    return batch.isComplete;
  }

  /** Documents in the order of `keys`, null for those that are not there. */
  async many(keys: readonly string[]): Promise<(Document | null)[]> {
    if (keys.length === 0) return [];
    if (!this.#redis.isOneServer) return bytesOf(await this.#redis.values(keys)).map(decoded);
    return new Promise((resolve, reject) => {
      const batch = this.#batches.of(null, keys.length);
      const from = batch.keys.length;
      batch.keys.push(...keys);
      const settle: Waiting['settle'] = (values) => resolve(values.slice(from, from + keys.length).map(decoded));
      batch.waiting.push({ settle, reject });
    });
  }

  #send(batch: Batch): void {
    this.#marked.read(batch.keys).then(
      (values) => {
        for (const one of batch.waiting) settle(one, values);
      },
      (error: unknown) => {
        for (const { reject } of batch.waiting) reject(error);
      },
    );
  }
}

/** A document that cannot be decoded fails its own read only, not the others of the turn. */
function settle(one: Waiting, values: Values): void {
  try {
    one.settle(values);
  } catch (error) {
    one.reject(error);
  }
}

function decoded(value: Buffer | Error | null | undefined): Document | null {
  if (value instanceof Error) throw value;
  return value ? decodeDocument(value) : null;
}
