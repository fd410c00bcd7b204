import { Fault } from '#libs/kernel/faults.ts';
import type { RedisClient } from '#libs/platform/redis/index.ts';
import { bytesOf, textsOf } from '#libs/platform/redis/index.ts';

import { MarkedReads } from './marked-reads.ts';
import { projectionKeys } from './read-model.keys.ts';
import type { ProjectionKeys, ReadModelName } from './read-model.keys.ts';

/**
 * Whether the read models of one category hold the whole log. While they do not (a first start on an old log, an
 * emptied Redis, a rebuild, a new version), "missing" may mean "not yet", and a list may lack entries.
 *
 * All methods throw `Fault` `store_unavailable`.
 */
export class CategoryState {
  readonly #redis: RedisClient;
  readonly #keys: ProjectionKeys;
  readonly #marked: MarkedReads;

  constructor(redis: RedisClient, name: ReadModelName) {
    this.#redis = redis;
    this.#keys = projectionKeys(name);
    this.#marked = new MarkedReads(redis, this.#keys);
  }

  async isComplete(): Promise<boolean> {
    const [complete] = await this.#marked.read([this.#keys.complete]);
    return Boolean(complete);
  }

  /**
   * Reads a key and completeness at the same moment: with two reads, a value that is written between them, before
   * completeness, would seem not to exist.
   */
  async valueOf(key: string): Promise<{ readonly value: Buffer | null; readonly isComplete: boolean }> {
    const [complete = null, value = null] = bytesOf(await this.#marked.read([this.#keys.complete, key]));
    return { value, isComplete: complete !== null };
  }

  /**
   * Runs a read of lists, which cannot show by themselves whether they lack entries.
   *
   * @throws `Fault` `not_caught_up` (503) when the read models were not complete from its beginning to its end
   */
  async whileComplete<T>(read: () => Promise<T>): Promise<T> {
    const build = await this.#completeBuild();
    const result = await read();
    if ((await this.#completeBuild()) !== build) throw beingBuilt();
    return result;
  }

  async #completeBuild(): Promise<string | null> {
    const [build = null, complete] = textsOf(await this.#redis.values([this.#keys.build, this.#keys.complete]));
    if (typeof complete !== 'string') throw beingBuilt();
    return typeof build === 'string' ? build : null;
  }
}

function beingBuilt(): Fault {
  return new Fault('not_caught_up', 'The read models are being built', { retryAfterSeconds: 2 });
}
