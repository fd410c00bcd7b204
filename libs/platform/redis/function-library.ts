import { readFileSync } from 'node:fs';

import type { Redis } from 'ioredis';

import { atEndOfTurn } from './end-of-turn.ts';
import type { FunctionCall, RedisClient, Reply } from './redis-client.ts';
import { isReplyError } from './redis-faults.ts';

/** Arguments of a call that is worth a write of its own. */
const LARGE_CALL = 100;
const NOT_LOADED = /^ERR Function not found/;

/** Calls of one caller that wait for the end of the turn. */
interface Sending {
  readonly calls: readonly FunctionCall[];
  resolve(replies: readonly Reply<unknown>[]): void;
  reject(error: unknown): void;
}

/**
 * A library of Redis functions from one `.lua` file. It is loaded on first use, and again when a Redis
 * turns out not to have it (a new or emptied one): the version is part of the library's and of its
 * functions' names, so that two versions of Parley on one Redis do not replace each other's.
 */
export class FunctionLibrary {
  readonly #redis: RedisClient;
  readonly #source: string;
  /** By the node that they go to: one that is slow holds up nobody else. */
  readonly #turns = new Map<Redis | null, Sending[]>();

  constructor(redis: RedisClient, file: URL) {
    this.#redis = redis;
    this.#source = readFileSync(file, 'utf8');
  }

  /**
   * Sends the calls, those of one slot in order; replies come in the order of the calls.
   *
   * @throws `Fault` `store_unavailable`; a script error as it is. Of several failures the first is thrown,
   * and calls behind it may have been executed: calls must be repeatable.
   */
  async callAll(calls: readonly FunctionCall[]): Promise<unknown[]> {
    if (calls.length === 0) return [];
    let replies = await this.#send(calls);
    if (replies.some(isNotLoaded)) {
      await this.#redis.loadFunctions(this.#source);
      replies = await this.#send(calls);
    }
    return replies.map((reply) => {
      if (!reply.ok) throw reply.error;
      return reply.value;
    });
  }

  async #send(calls: readonly FunctionCall[]): Promise<readonly Reply<unknown>[]> {
    if (this.#redis.isOneServer) return this.#sendTo(null, calls);
    const places = new Map<Redis | null, number[]>();
    for (const [place, { keys }] of calls.entries()) {
      const node = this.#redis.nodeOf(keys[0] ?? '');
      const known = places.get(node);
      if (known === undefined) places.set(node, [place]);
      else known.push(place);
    }
    const replies: Reply<unknown>[] = [];
    await Promise.all(
      [...places].map(async ([node, some]) => {
        const found = await this.#sendTo(
          node,
          some.flatMap((place) => calls[place] ?? []),
        );
        for (const [index, reply] of found.entries()) replies[some[index] ?? 0] = reply;
      }),
    );
    return replies;
  }

  /** What is sent in one turn of the event loop, by however many callers, goes together: one write for all. */
  #sendTo(node: Redis | null, calls: readonly FunctionCall[]): Promise<readonly Reply<unknown>[]> {
    return new Promise((resolve, reject) => {
      let turn = this.#turns.get(node);
      if (turn === undefined) {
        turn = [];
        this.#turns.set(node, turn);
        atEndOfTurn(this.#redis, () => this.#flush(node));
      }
      turn.push({ calls, resolve, reject });
      // A large one goes at once: callers with two in flight would otherwise end up sending both together,
      // and Redis would be idle while they are prepared.
      if (calls.some(({ args }) => args.length > LARGE_CALL)) this.#flush(node);
    });
  }

  #flush(node: Redis | null): void {
    const turn = this.#turns.get(node);
    if (turn === undefined) return;
    this.#turns.delete(node);
    this.#redis.call(turn.flatMap(({ calls }) => calls)).then(
      (replies) => {
        let at = 0;
        for (const { calls, resolve } of turn) resolve(replies.slice(at, (at += calls.length)));
      },
      (error: unknown) => {
        for (const { reject } of turn) reject(error);
      },
    );
  }
}

function isNotLoaded(reply: Reply<unknown>): boolean {
  return !reply.ok && isReplyError(reply.error) && NOT_LOADED.test(reply.error.message);
}
