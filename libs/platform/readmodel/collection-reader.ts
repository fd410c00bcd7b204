import type { Redis } from 'ioredis';
import { LRUCache } from 'lru-cache';

import { atEndOfIteration, bytesOf, LoopBatches, type RedisClient } from '#libs/platform/redis/index.ts';

import { LargeReplies } from './large-replies.ts';

/** Part of a sorted set whose members are numbers that are their own scores. */
export interface NumberRange {
  /** Exclusive; absent = from the lowest. */
  readonly after?: number | undefined;
  /** Exclusive; absent = to the highest. */
  readonly before?: number | undefined;
  readonly order: 'asc' | 'desc';
  readonly offset: number;
  readonly limit: number;
}

interface Batch {
  readonly fields: string[];
  isUndivided: boolean;
  readonly values: PromiseWithResolvers<readonly (Buffer | null)[]>;
}

/** Fields in one `HMGET`: a longer reply would delay the others. */
const MAX_FIELDS = 512;
/** Members of one score, on average, from which on a command for each score costs less than their scores. */
const MANY_OF_SCORE = 50;
const REMEMBERED = 1_000;

/**
 * Reads the unbounded parts of an entity: hashes of ready documents, and sorted sets over them. Requests of one iteration of
 * the event loop are sent together.
 *
 * All methods throw `Fault` `store_unavailable`.
 */
export class CollectionReader {
  readonly #redis: RedisClient;
  readonly #large = new LargeReplies();
  /** Sets that had many members of each score when they were last read. */
  readonly #crowded = new LRUCache<string, true>({ max: REMEMBERED });
  /** By hash. */
  readonly #batches: LoopBatches<string, Batch>;

  constructor(redis: RedisClient) {
    this.#redis = redis;
    this.#batches = new LoopBatches(redis, {
      create: () => ({ fields: [], isUndivided: false, values: Promise.withResolvers() }),
      isFull: ({ fields }, more) => fields.length + more > MAX_FIELDS,
      send: ({ fields, isUndivided, values }, hash) =>
        values.resolve(this.#large.read(hash, fields, (some) => this.#read(hash, some), { isUndivided })),
    });
  }

  /** Whether the values of so many fields are read in several pieces, one after another. */
  isDivided(hash: string, fields: number): boolean {
    return this.#large.isDivided(hash, fields);
  }

  /**
   * Fields of a hash as bytes, null for missing ones. Requests of one iteration are one `HMGET` for each hash.
   *
   * @param options `isUndivided`: all at the end of this iteration, also large values
   */
  async fields(
    hash: string,
    fields: readonly (string | number)[],
    { isUndivided = false } = {},
  ): Promise<(Buffer | null)[]> {
    if (fields.length === 0) return [];
    const batch = this.#batches.of(hash, fields.length);
    batch.isUndivided ||= isUndivided;
    const from = batch.fields.length;
    for (const field of fields) batch.fields.push(String(field));
    return (await batch.values.promise).slice(from, from + fields.length);
  }

  #read(hash: string, fields: readonly string[]): Promise<(Buffer | null)[]> {
    return this.#redis.send(hash, (node) => node.hmgetBuffer(hash, ...fields));
  }

  /** Strings as bytes, null for missing ones. */
  async texts(keys: readonly string[]): Promise<(Buffer | null)[]> {
    return bytesOf(await this.#redis.values(keys));
  }

  #send<T>(key: string, command: (node: Redis) => Promise<T>): Promise<T> {
    return new Promise((resolve) => {
      atEndOfIteration(this.#redis, () => resolve(this.#redis.send(key, command)));
    });
  }

  async numbers(set: string, range: NumberRange): Promise<number[]> {
    const { after, before, order, offset, limit } = range;
    const isFromItsEnd = (order === 'asc' ? after : before) === undefined;
    if (isFromItsEnd && offset > 0) return this.#numbersByRank(set, range);
    const [low, high] = boundsOf(range);
    const members =
      order === 'asc'
        ? await this.#send(set, (node) => node.zrangebyscore(set, low, high, 'LIMIT', offset, limit))
        : await this.#send(set, (node) => node.zrevrangebyscore(set, high, low, 'LIMIT', offset, limit));
    return members.map(Number);
  }

  /** `LIMIT` is linear in its offset; a rank is not. */
  async #numbersByRank(set: string, { after, before, order, offset, limit }: NumberRange): Promise<number[]> {
    const last = limit < 0 ? -1 : offset + limit - 1;
    const members =
      order === 'asc'
        ? await this.#send(set, (node) => node.zrange(set, String(offset), String(last)))
        : await this.#send(set, (node) => node.zrevrange(set, offset, last));
    return members.map(Number).filter((number) => number > (after ?? -Infinity) && number < (before ?? Infinity));
  }

  async count(set: string, range: Pick<NumberRange, 'after' | 'before'>): Promise<number> {
    return this.#send(set, (node) => node.zcount(set, ...boundsOf(range)));
  }

  /** The members of a sorted set that have one of the scores, by their score. */
  async withScores(set: string, scores: readonly number[]): Promise<Map<number, string[]>> {
    const found = this.#crowded.has(set) ? await this.#byScore(set, scores) : await this.#byRange(set, scores);
    let members = 0;
    for (const ofScore of found.values()) members += ofScore.length;
    if (members > MANY_OF_SCORE * scores.length) this.#crowded.set(set, true);
    else this.#crowded.delete(set);
    return found;
  }

  /** With a score beside each member, which costs more than the member itself: for sets with few. */
  async #byRange(set: string, scores: readonly number[]): Promise<Map<number, string[]>> {
    const wanted = new Map(scores.map((score) => [score, [] as string[]]));
    const found = await Promise.all(
      rangesOver(scores).map(([low, high]) =>
        this.#send(set, (node) => node.zrangebyscore(set, low, high, 'WITHSCORES')),
      ),
    );
    for (const flat of found) {
      for (let at = 0; at + 1 < flat.length; at += 2) wanted.get(Number(flat[at + 1]))?.push(flat[at] ?? '');
    }
    for (const [score, members] of wanted) if (members.length === 0) wanted.delete(score);
    return wanted;
  }

  /** A command for each score, for sets with many members of each. */
  async #byScore(set: string, scores: readonly number[]): Promise<Map<number, string[]>> {
    const found = await Promise.all(
      scores.map((score) => this.#send(set, (node) => node.zrangebyscore(set, score, score))),
    );
    const members = new Map<number, string[]>();
    for (const [index, score] of scores.entries()) {
      const ofScore = found[index] ?? [];
      if (ofScore.length > 0) members.set(score, ofScore);
    }
    return members;
  }

  /** Which of the numbers are in a sorted set. */
  async contained(set: string, numbers: readonly number[]): Promise<boolean[]> {
    if (numbers.length === 0) return [];
    const scores = await this.#send(set, (node) => node.zmscore(set, ...numbers.map(String)));
    return scores.map((score) => score !== null);
  }
}

function boundsOf({ after, before }: Pick<NumberRange, 'after' | 'before'>): [low: string, high: string] {
  return [after === undefined ? '-inf' : `(${after}`, before === undefined ? '+inf' : `(${before}`];
}

/** A single range for dense numbers; a range for each of sparse ones, to read no others. */
function rangesOver(numbers: readonly number[]): (readonly [number, number])[] {
  if (numbers.length === 0) return [];
  let [low, high] = [Infinity, -Infinity];
  for (const number of numbers) {
    low = Math.min(low, number);
    high = Math.max(high, number);
  }
  return high - low < 4 * numbers.length ? [[low, high]] : numbers.map((number) => [number, number]);
}
