import type { Redis } from 'ioredis';

import { atEndOfTurn, bytesOf } from '#libs/platform/redis/index.ts';
import type { RedisClient } from '#libs/platform/redis/index.ts';

import { decodeDocument } from './document.ts';
import type { Document } from './document.ts';
import { MarkedReads } from './marked-reads.ts';
import { PROJECTION_KEYS } from './read-model.keys.ts';

/** What is stored of an entity, and whether the read models held the whole log at that very moment. */
export interface FoundDocument {
  readonly document: Document | null;
  readonly isComplete: boolean;
}

type Values = readonly (Buffer | null | Error)[];

/** A read that waits for the values of its turn; it knows which of them are its own. */
interface Waiting {
  settle(values: Values): void;
  reject(error: unknown): void;
}

/** Reads of one turn of the event loop, from one node. */
interface Turn {
  isComplete?: Promise<boolean>;
  readonly node: Redis | null;
  /** Begins with the mark of completeness. */
  readonly keys: [string, ...string[]];
  readonly waiting: Waiting[];
}

/** Keys in one `MGET`: beyond this, one reply would hold up the others for long. */
const MAX_KEYS = 512;

/**
 * Reads stored documents as bytes. Reads that are asked for in one turn of the event loop go to Redis
 * as one `MGET` (in a cluster, together to each node), which is what makes many small reads cheap.
 *
 * @throws `Fault` `store_unavailable`
 */
export class DocumentReader {
  readonly #redis: RedisClient;
  readonly #marked: MarkedReads;
  /** By node: one that is slow holds up nobody else. On one server there is one, which need not be looked for. */
  readonly #turns = new Map<Redis | null, Turn>();

  constructor(redis: RedisClient) {
    this.#redis = redis;
    this.#marked = new MarkedReads(redis);
  }

  // Written without intermediate promises and arrays: this is what every read of an entity runs through.
  one(key: string): Promise<FoundDocument> {
    return new Promise((resolve, reject) => {
      const { keys, waiting } = this.#turnFor(this.#redis.isOneServer ? null : this.#redis.nodeOf(key), 1);
      const from = keys.push(key) - 1;
      const settle: Waiting['settle'] = (values) =>
        resolve({ document: decoded(values[from]), isComplete: Boolean(values[0]) });
      waiting.push({ settle, reject });
    });
  }

  /**
   * Whether the read models hold the whole log, asked once for all who ask in one turn of the event loop, and before
   * anything else that is sent in it by `atEndOfTurn`.
   */
  isComplete(): Promise<boolean> {
    // Apart from all values: in a cluster, looking at them again is no help to who reads other things meanwhile.
    const turn = this.#turnFor(null, 0);
    turn.isComplete ??= new Promise((resolve, reject) => {
      turn.waiting.push({ settle: ([complete]) => resolve(Boolean(complete)), reject });
    });
    return turn.isComplete;
  }

  /** Documents in the order of `keys`, null for those that are not there. */
  async many(keys: readonly string[]): Promise<(Document | null)[]> {
    if (keys.length === 0) return [];
    if (!this.#redis.isOneServer) return bytesOf(await this.#redis.values(keys)).map(decoded);
    return new Promise((resolve, reject) => {
      const turn = this.#turnFor(null, keys.length);
      const from = turn.keys.length;
      turn.keys.push(...keys);
      const settle: Waiting['settle'] = (values) => resolve(values.slice(from, from + keys.length).map(decoded));
      turn.waiting.push({ settle, reject });
    });
  }

  #turnFor(node: Redis | null, count: number): Turn {
    let turn = this.#turns.get(node);
    if (turn !== undefined && turn.keys.length + count > MAX_KEYS) {
      this.#flush(turn);
      turn = undefined;
    }
    if (turn === undefined) {
      const begun: Turn = { node, keys: [PROJECTION_KEYS.complete], waiting: [] };
      this.#turns.set(node, begun);
      atEndOfTurn(this.#redis, () => this.#flush(begun), { first: true });
      return begun;
    }
    return turn;
  }

  #flush(turn: Turn): void {
    // A full one has gone before the end of its turn.
    if (this.#turns.get(turn.node) !== turn) return;
    this.#turns.delete(turn.node);
    this.#marked.read(turn.keys).then(
      (values) => {
        for (const one of turn.waiting) settle(one, values);
      },
      (error: unknown) => {
        for (const { reject } of turn.waiting) reject(error);
      },
    );
  }
}

/** A document that cannot be decoded is the fault of its reader alone, not of those in the same turn. */
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
