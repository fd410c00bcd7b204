import type { Redis } from 'ioredis';

import { guarded } from '#libs/platform/redis/redis.ts';

import { decodeDocument } from './document.ts';
import type { Document } from './document.ts';

interface Pending {
  readonly keys: string[];
  readonly settle: { resolve(values: readonly (Buffer | null)[]): void; reject(error: unknown): void }[];
  readonly spans: number[];
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
  #pending: Pending | null = null;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async one(key: string): Promise<Document | null> {
    const [value] = await this.#read([key]);
    return value ? decodeDocument(value) : null;
  }

  /** Documents in the order of `keys`, null for those that are not there. */
  async many(keys: readonly string[]): Promise<(Document | null)[]> {
    if (keys.length === 0) return [];
    const values = await this.#read(keys);
    return values.map((value) => (value ? decodeDocument(value) : null));
  }

  #read(keys: readonly string[]): Promise<readonly (Buffer | null)[]> {
    return new Promise((resolve, reject) => {
      if (this.#pending !== null && this.#pending.keys.length + keys.length > MAX_KEYS) this.#flush();
      if (this.#pending === null) {
        this.#pending = { keys: [], settle: [], spans: [] };
        setImmediate(() => this.#flush());
      }
      this.#pending.keys.push(...keys);
      this.#pending.spans.push(keys.length);
      this.#pending.settle.push({ resolve, reject });
    });
  }

  #flush(): void {
    const pending = this.#pending;
    if (pending === null) return;
    this.#pending = null;
    guarded(this.#redis.mgetBuffer(pending.keys)).then(
      (values) => {
        let at = 0;
        pending.settle.forEach(({ resolve }, index) => {
          const end = at + (pending.spans[index] ?? 0);
          resolve(values.slice(at, end));
          at = end;
        });
      },
      (error: unknown) => {
        for (const { reject } of pending.settle) reject(error);
      },
    );
  }
}
