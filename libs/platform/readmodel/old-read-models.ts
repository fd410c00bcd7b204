import type { RedisClient } from '#libs/platform/redis/index.ts';
import { textsOf } from '#libs/platform/redis/index.ts';

import { projectionKeys, PROJECTION_KEYS, READ_MODEL_VERSION, readModelPrefix } from './read-model.keys.ts';

/** How far an old version and ours had come when they were looked at. */
interface Sighting {
  readonly theirs: string;
  readonly ours: string;
}

const STEP = 1_000;

/**
 * Removes the read models of versions of Parley that are gone: each version has keys of its own, and nothing else
 * would ever remove those. While processes are replaced, two versions are at work side by side; so a version is taken
 * for gone only when its checkpoint has stood still between two looks, and ours has not.
 *
 * Omissions: read models of newer versions are left alone, for whoever goes back to an older one.
 */
export class OldReadModels {
  readonly #redis: RedisClient;
  readonly #sightings = new Map<number, Sighting>();

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /**
   * To be called now and then, while our own read models hold the whole log.
   *
   * @returns the versions that were removed
   * @throws `Fault` `store_unavailable`
   */
  async look(): Promise<number[]> {
    const older = Array.from({ length: READ_MODEL_VERSION - 1 }, (_, index) => index + 1);
    const keys = older.flatMap((version) => [projectionKeys(version).build, projectionKeys(version).checkpoint]);
    const [ours, ...found] = textsOf(await this.#redis.values([PROJECTION_KEYS.checkpoint, ...keys]));
    const removed: number[] = [];
    for (const [index, version] of older.entries()) {
      const [build = null, checkpoint = null] = found.slice(2 * index, 2 * index + 2);
      if (build === null || typeof ours !== 'string') continue;
      const before = this.#sightings.get(version);
      const theirs = `${build} ${checkpoint}`;
      if (before?.theirs !== theirs) this.#sightings.set(version, { theirs, ours });
      else if (before.ours !== ours) {
        await this.#remove(version);
        removed.push(version);
      }
    }
    return removed;
  }

  /** What names the version goes last: an end that was cut short is seen, and made up for, at a later look. */
  async #remove(version: number): Promise<void> {
    const { build, checkpoint, complete, shares } = projectionKeys(version);
    await this.#redis.remove([complete, shares]);
    for await (const keys of this.#redis.scan(`${readModelPrefix(version)}*`, STEP)) {
      await this.#redis.remove(keys.filter((key) => key !== build && key !== checkpoint));
    }
    await this.#redis.remove([build, checkpoint]);
    this.#sightings.delete(version);
  }
}
