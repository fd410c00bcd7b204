import type { RedisClient } from '#libs/platform/redis/index.ts';
import { textsOf } from '#libs/platform/redis/index.ts';

import { PROJECTION_KEYS } from './read-model.keys.ts';

type Values = readonly (Buffer | null | Error)[];

const MARK = Buffer.from('1');

/**
 * Reads keys together with the mark that the read models hold the whole log. Who finds the mark may take what is not
 * there for what does not exist.
 *
 * On one server that is one `MGET`, one moment. In a cluster the mark lives on a node of its own, so there is no such
 * moment, but a span: the mark of this very building was seen before the values were read, and is seen after it again.
 * It goes first when read models are thrown away, and a new building has a new name; so it was there all the time.
 */
export class MarkedReads {
  readonly #redis: RedisClient;
  /** The building that was last seen to be complete. */
  #seen: string | null = null;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /**
   * @param keys begin with `PROJECTION_KEYS.complete`
   * @returns the values in their order; in place of the mark, null unless all others are of complete read models. A
   *   value on a node that is away is a fault. The mark alone: whether they were complete before, and still are, so
   *   that what is read meanwhile is of complete ones; in a cluster, the first look finds that nobody knows.
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
      // The first look at this building: what was read may be from before it was complete.
      if (attempt === 2 || others.length === 0) return [null, ...values];
      before = after;
    }
  }

  async #completeBuild(): Promise<string | null> {
    const [build = null, complete = null] = textsOf(
      await this.#redis.values([PROJECTION_KEYS.build, PROJECTION_KEYS.complete]),
    );
    this.#seen = complete === null ? null : build;
    return this.#seen;
  }
}
