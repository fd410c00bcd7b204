import type { RedisClient } from '#libs/platform/redis/index.ts';
import { textsOf } from '#libs/platform/redis/index.ts';

import type { ProjectionKeys } from './read-model.keys.ts';

type Values = readonly (Buffer | null | Error)[];

const MARK = Buffer.from('1');

/**
 * Reads keys together with the mark that the read models of a category hold the whole log. With the mark, a missing
 * value proves that the entity does not exist.
 *
 * One server answers one `MGET` at one moment. In a cluster the mark may be on another node, so there is no such
 * moment, but an interval: the mark of the same build is read before the values and again after them. Deleting read
 * models removes the mark first, and a new build has a new name, so the mark existed during the whole interval.
 */
export class MarkedReads {
  readonly #redis: RedisClient;
  readonly #keys: ProjectionKeys;
  /** The build that was complete when it was last read. */
  #seen: string | null = null;

  constructor(redis: RedisClient, keys: ProjectionKeys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /**
   * @param keys begin with the key of the mark
   * @returns the values in their order; in place of the mark, null unless all others are of complete read models. A
   *   value on an unavailable node is a fault. With the mark alone: whether the read models were complete before and
   *   still are; in a cluster, the first read answers null.
   * @throws `Fault` `store_unavailable` if nothing could be read, or not the mark
   */
  async read(keys: readonly [string, ...string[]]): Promise<Values> {
    if (this.#redis.isOneServer) return this.#redis.values(keys);
    const [, ...others] = keys;
    let before = this.#seen;
    for (let attempt = 1; ; attempt++) {
      const values = others.length === 0 ? [] : await this.#redis.values(others);
      const after = await this.#completeBuild();
      if (after === null) return [null, ...values];
      if (after === before) return [MARK, ...values];
      // The first read of this build: the values may be older than its completion.
      if (attempt === 2 || others.length === 0) return [null, ...values];
      before = after;
    }
  }

  async #completeBuild(): Promise<string | null> {
    const [build = null, complete = null] = textsOf(await this.#redis.values([this.#keys.build, this.#keys.complete]));
    this.#seen = complete === null ? null : build;
    return this.#seen;
  }
}
