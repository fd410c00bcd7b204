import { LRUCache } from 'lru-cache';

import { FairSemaphore } from '#libs/platform/lifecycle/index.ts';

/** Approximate bytes in one reply with large values, and how many such replies may be pending. */
const PIECE_BYTES = 2 * 1024 * 1024;
const MAX_PIECES = 4;
/** A batch of smaller values never exceeds a piece. */
const LARGE_VALUE_BYTES = 4_096;
const REMEMBERED = 1_000;

type Values = readonly (Buffer | null)[];

/**
 * Reads large values of hashes in pieces, a few at a time. All commands of a process share one connection: a few replies
 * of 20 MB would delay the commands behind them until these time out.
 *
 * The size of a hash's values is known from the last reply; the first reply is not divided.
 */
export class LargeReplies {
  /** By hash, the bytes of a value, where they are large. */
  readonly #sizes = new LRUCache<string, number>({ max: REMEMBERED });
  readonly #pieces = new FairSemaphore({ permits: MAX_PIECES });

  isDivided(hash: string, fields: number): boolean {
    return (this.#sizes.get(hash) ?? 0) * fields > PIECE_BYTES;
  }

  /** @param readFields reads some of the fields, in their order */
  async read(
    hash: string,
    fields: readonly string[],
    readFields: (some: readonly string[]) => Promise<Values>,
    { isUndivided = false } = {},
  ): Promise<Values> {
    if (isUndivided || !this.isDivided(hash, fields.length)) return this.#noted(hash, await readFields(fields));
    const most = Math.max(1, Math.floor(PIECE_BYTES / (this.#sizes.get(hash) ?? 1)));
    const values: (Buffer | null)[] = [];
    for (let at = 0; at < fields.length; at += most) {
      values.push(...(await this.#pieces.run(() => readFields(fields.slice(at, at + most)))));
    }
    return this.#noted(hash, values);
  }

  #noted(hash: string, values: Values): Values {
    let bytes = 0;
    for (const value of values) bytes += value?.length ?? 0;
    const size = bytes / values.length;
    if (size >= LARGE_VALUE_BYTES) this.#sizes.set(hash, size);
    else this.#sizes.delete(hash);
    return values;
  }
}
