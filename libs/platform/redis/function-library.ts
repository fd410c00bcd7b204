import { readFileSync } from 'node:fs';

import type { Redis } from 'ioredis';

import { isReplyError, redisFault } from './redis.ts';

const NOT_LOADED = /^ERR Function not found/;

/** One call of a Redis function: keys first, then arguments. */
export interface FunctionCall {
  readonly name: string;
  readonly keys: readonly string[];
  readonly args: readonly (string | Buffer | number)[];
}

/**
 * A library of Redis functions from one `.lua` file. It is loaded on first use, and again when a Redis
 * turns out not to have it (a new or emptied one): the version is part of the library's and of its
 * functions' names, so that two versions of Parley on one Redis do not replace each other's.
 */
export class FunctionLibrary {
  readonly #redis: Redis;
  readonly #source: string;

  constructor(redis: Redis, file: URL) {
    this.#redis = redis;
    this.#source = readFileSync(file, 'utf8');
  }

  /**
   * Sends the calls in order as one pipeline; replies come in the same order.
   *
   * @throws `Fault` `store_unavailable`; a script error as it is. Of several failures the first is thrown,
   * and calls behind it may have been executed: calls must be repeatable.
   */
  async callAll(calls: readonly FunctionCall[]): Promise<unknown[]> {
    if (calls.length === 0) return [];
    let replies = await this.#send(calls);
    if (replies.some(([error]) => isNotLoaded(error))) {
      await this.#load();
      replies = await this.#send(calls);
    }
    return replies.map(([error, reply]) => {
      if (error !== null) throw redisFault(error);
      return reply;
    });
  }

  async #send(calls: readonly FunctionCall[]): Promise<[Error | null, unknown][]> {
    const pipeline = this.#redis.pipeline();
    for (const { name, keys, args } of calls) pipeline.fcall(name, keys.length, ...keys, ...args);
    try {
      return (await pipeline.exec()) ?? [];
    } catch (error) {
      throw redisFault(error);
    }
  }

  async #load(): Promise<void> {
    try {
      await this.#redis.function('LOAD', 'REPLACE', this.#source);
    } catch (error) {
      throw redisFault(error);
    }
  }
}

function isNotLoaded(error: Error | null): boolean {
  return isReplyError(error) && NOT_LOADED.test(error.message);
}
