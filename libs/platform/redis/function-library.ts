import { readFileSync } from 'node:fs';

import type { Redis } from 'ioredis';

import type { FunctionCall, RedisClient, Reply } from './redis-client.ts';
import { isReplyError } from './redis-faults.ts';
import { LoopBatches } from './loop-batches.ts';

/** Arguments of a call that gets a write of its own. */
const LARGE_CALL = 100;
const NOT_LOADED = /^ERR Function not found/;

/** Calls of one caller that are sent at the end of the iteration. */
interface Sending {
  readonly calls: readonly FunctionCall[];
  resolve(replies: readonly Reply<unknown>[]): void;
  reject(error: unknown): void;
}

/**
 * A library of Redis functions from one `.lua` file. It is loaded on first use, and again when a Redis does not have it
 * (a new or emptied one). The names of the library and its functions contain a version, so two versions of Parley can
 * share a Redis.
 */
export class FunctionLibrary {
  readonly #redis: RedisClient;
  readonly #source: string;
  /** By node, so that a slow node delays only its own calls; null on one server. */
  readonly #batches: LoopBatches<Redis | null, Sending[]>;

  constructor(redis: RedisClient, file: URL) {
    this.#redis = redis;
    this.#source = readFileSync(file, 'utf8');
    this.#batches = new LoopBatches(redis, { create: () => [], send: (batch) => this.#sendBatch(batch) });
  }

  /**
   * Sends the calls, those of one slot in order; replies are in the order of the calls.
   *
   * @throws `Fault` `store_unavailable`; a script error unchanged. Throws the first of several failures: other calls may have
   * been executed
   */
  async callAll(calls: readonly FunctionCall[]): Promise<unknown[]> {
    return valuesOf(await this.repliesTo(calls));
  }

  /** The same, where the caller needs to know which of the calls have failed. */
  async repliesTo(calls: readonly FunctionCall[]): Promise<readonly Reply<unknown>[]> {
    if (calls.length === 0) return [];
    const replies = await this.#send(calls);
    // Other nodes of a cluster have executed their calls.
    const refused = calls.filter((_call, index) => isNotLoaded(replies[index]));
    if (refused.length === 0) return replies;
    await this.#redis.loadFunctions(this.#source);
    const later = (await this.#send(refused)).values();
    return replies.map((reply) => (isNotLoaded(reply) ? (later.next().value ?? reply) : reply));
  }

  async #send(calls: readonly FunctionCall[]): Promise<readonly Reply<unknown>[]> {
    if (this.#redis.isOneServer) return this.#sendTo(null, calls);
    const byNode = Map.groupBy(calls.keys(), (index) => this.#redis.nodeOf(calls[index]?.keys[0] ?? ''));
    const replies: Reply<unknown>[] = [];
    await Promise.all(
      [...byNode].map(async ([node, indexes]) => {
        const some = indexes.flatMap((index) => calls[index] ?? []);
        for (const [nth, reply] of (await this.#sendTo(node, some)).entries()) replies[indexes[nth] ?? 0] = reply;
      }),
    );
    return replies;
  }

  #sendTo(node: Redis | null, calls: readonly FunctionCall[]): Promise<readonly Reply<unknown>[]> {
    return new Promise((resolve, reject) => {
      this.#batches.of(node).push({ calls, resolve, reject });
      // Sends a large call at once: callers with two in flight would otherwise send both together, and Redis would be
      // idle while they are prepared.
      if (calls.some(({ args }) => args.length > LARGE_CALL)) this.#batches.flush(node);
    });
  }

  #sendBatch(batch: readonly Sending[]): void {
    this.#redis.call(batch.flatMap(({ calls }) => calls)).then(
      (replies) => {
        let at = 0;
        for (const { calls, resolve } of batch) resolve(replies.slice(at, (at += calls.length)));
      },
      (error: unknown) => {
        for (const { reject } of batch) reject(error);
      },
    );
  }
}

/** @throws the error of the first call that has failed */
export function valuesOf(replies: readonly Reply<unknown>[]): unknown[] {
  return replies.map((reply) => {
    if (!reply.ok) throw reply.error;
    return reply.value;
  });
}

function isNotLoaded(reply: Reply<unknown> | undefined): boolean {
  return reply?.ok === false && isReplyError(reply.error) && NOT_LOADED.test(reply.error.message);
}
