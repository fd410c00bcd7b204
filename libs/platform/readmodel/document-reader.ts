import type { Redis } from 'ioredis';

import { atEndOfTurn } from '#libs/platform/redis/end-of-turn.ts';
import { guarded } from '#libs/platform/redis/redis.ts';

import { decodeDocument } from './document.ts';
import type { Document } from './document.ts';
import { PROJECTION_KEYS } from './read-model.keys.ts';

/** What is stored of an entity, and whether the read models held the whole log at that very moment. */
export interface FoundDocument {
  readonly document: Document | null;
  readonly isComplete: boolean;
}

/** A read that waits for the values of its turn; it knows which of them are its own. */
interface Waiting {
  settle(values: readonly (Buffer | null)[]): void;
  reject(error: unknown): void;
}

/** Reads of one turn of the event loop. */
interface Turn {
  isComplete?: Promise<boolean>;
  /** Begins with the mark of completeness. */
  readonly keys: string[];
  readonly waiting: Waiting[];
}

/** Keys in one `MGET`: beyond this, one reply would hold up the others for long. */
const MAX_KEYS = 512;

/**
 * Reads stored documents as bytes. Reads that are asked for in one turn of the event loop go to Redis
 * as one `MGET`, which is what makes many small reads cheap.
 *
 * @throws `Fault` `store_unavailable`
 */
export class DocumentReader {
  readonly #redis: Redis;
  #turn: Turn | null = null;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  // Written without intermediate promises and arrays: this is what every read of an entity runs through.
  one(key: string): Promise<FoundDocument> {
    return new Promise((resolve, reject) => {
      const { keys, waiting } = this.#turnFor(1);
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
    const turn = this.#turnFor(0);
    turn.isComplete ??= new Promise((resolve, reject) => {
      turn.waiting.push({ settle: ([complete]) => resolve(Boolean(complete)), reject });
    });
    return turn.isComplete;
  }

  /** Documents in the order of `keys`, null for those that are not there. */
  async many(keys: readonly string[]): Promise<(Document | null)[]> {
    if (keys.length === 0) return [];
    return new Promise((resolve, reject) => {
      const turn = this.#turnFor(keys.length);
      const from = turn.keys.length;
      turn.keys.push(...keys);
      const settle: Waiting['settle'] = (values) => resolve(values.slice(from, from + keys.length).map(decoded));
      turn.waiting.push({ settle, reject });
    });
  }

  #turnFor(count: number): Turn {
    if (this.#turn !== null && this.#turn.keys.length + count > MAX_KEYS) this.#flush();
    if (this.#turn === null) {
      this.#turn = { keys: [PROJECTION_KEYS.complete], waiting: [] };
      atEndOfTurn(this.#redis, () => this.#flush(), { first: true });
    }
    return this.#turn;
  }

  #flush(): void {
    const turn = this.#turn;
    if (turn === null) return;
    this.#turn = null;
    guarded(this.#redis.mgetBuffer(turn.keys)).then(
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
function settle(one: Waiting, values: readonly (Buffer | null)[]): void {
  try {
    one.settle(values);
  } catch (error) {
    one.reject(error);
  }
}

function decoded(value: Buffer | null | undefined): Document | null {
  return value ? decodeDocument(value) : null;
}
