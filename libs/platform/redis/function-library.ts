import { readFileSync } from 'node:fs';

import type { Redis } from 'ioredis';

import { atEndOfTurn } from './end-of-turn.ts';
import { isReplyError, redisFault } from './redis.ts';

/** Arguments of a call that is worth a write of its own. */
const LARGE_CALL = 100;
const NOT_LOADED = /^ERR Function not found/;

/** One call of a Redis function: keys first, then arguments. */
export interface FunctionCall {
  readonly name: string;
  readonly keys: readonly string[];
  readonly args: readonly (string | Buffer | number)[];
}

type Reply = readonly [Error | null, unknown];

/** Calls of one caller that wait for the end of the turn. */
interface Sending {
  readonly calls: readonly FunctionCall[];
  resolve(replies: readonly Reply[]): void;
  reject(error: unknown): void;
}

/**
 * A library of Redis functions from one `.lua` file. It is loaded on first use, and again when a Redis
 * turns out not to have it (a new or emptied one): the version is part of the library's and of its
 * functions' names, so that two versions of Parley on one Redis do not replace each other's.
 */
export class FunctionLibrary {
  readonly #redis: Redis;
  readonly #source: string;
  #turn: Sending[] | null = null;

  constructor(redis: Redis, file: URL) {
    this.#redis = redis;
    this.#source = readFileSync(file, 'utf8');
  }

  /**
   * Sends the calls in order; replies come in the same order.
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

  /** What is sent in one turn of the event loop, by however many callers, goes as one pipeline: one write for all. */
  #send(calls: readonly FunctionCall[]): Promise<readonly Reply[]> {
    return new Promise((resolve, reject) => {
      if (this.#turn === null) {
        this.#turn = [];
        atEndOfTurn(this.#redis, () => this.#flush());
      }
      this.#turn.push({ calls, resolve, reject });
      // A large one goes at once: callers with two in flight would otherwise end up sending both together,
      // and Redis would be idle while they are prepared.
      if (calls.some(({ args }) => args.length > LARGE_CALL)) this.#flush();
    });
  }

  #flush(): void {
    const turn = this.#turn;
    if (turn === null) return;
    this.#turn = null;
    const pipeline = this.#redis.pipeline();
    for (const { calls } of turn) {
      for (const { name, keys, args } of calls) pipeline.fcall(name, keys.length, ...keys, ...args);
    }
    pipeline.exec().then(
      (replies) => {
        let at = 0;
        for (const { calls, resolve } of turn) resolve((replies ?? []).slice(at, (at += calls.length)));
      },
      (error: unknown) => {
        for (const { reject } of turn) reject(redisFault(error));
      },
    );
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
