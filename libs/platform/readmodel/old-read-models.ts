import { textsOf, type RedisClient } from '#libs/platform/redis/index.ts';

import {
  commonPrefix,
  LAST_COMMON_VERSION,
  projectionKeys,
  type ProjectionKeys,
  projectionKeysUnder,
  type ReadModelName,
  readModelPrefix,
} from './read-model.keys.ts';

/** Read models of an older version, and the checkpoint of the ones that have replaced them. */
interface Old {
  readonly prefix: string;
  readonly keys: ProjectionKeys;
  readonly successor: string;
}

/** How far an old version and ours had come when they were last compared. */
interface Comparison {
  readonly theirs: string;
  readonly ours: string;
}

const STEP = 1_000;

/**
 * Removes read models of older versions: each version of a category has its own keys. While processes are replaced, two
 * versions are in use side by side, so a version is removed only when its checkpoint has not moved between two
 * comparisons and the checkpoint of our version has.
 *
 * Omissions: read models of newer versions are kept, for a return to an older Parley; so are those of categories that
 * this Parley does not know.
 */
export class OldReadModels {
  readonly #redis: RedisClient;
  readonly #old: readonly Old[];
  readonly #comparisons = new Map<string, Comparison>();

  constructor(redis: RedisClient, names: readonly ReadModelName[]) {
    this.#redis = redis;
    this.#old = names.flatMap((name, index) => [
      ...versionsUpTo(name.version - 1).map((version) => oldOf(readModelPrefix({ ...name, version }), name)),
      // Replaced by all categories together: one that follows the log represents them.
      ...(index === 0 ? versionsUpTo(LAST_COMMON_VERSION).map((version) => oldOf(commonPrefix(version), name)) : []),
    ]);
  }

  /**
   * To be called at intervals, while our own read models hold the whole log.
   *
   * @returns the prefixes of the keys that were removed
   * @throws `Fault` `store_unavailable`
   */
  async removeUnused(): Promise<string[]> {
    const found = textsOf(
      await this.#redis.values(this.#old.flatMap(({ keys, successor }) => [keys.build, keys.checkpoint, successor])),
    );
    const removed: string[] = [];
    for (const [index, old] of this.#old.entries()) {
      const [build = null, checkpoint = null, ours = null] = found.slice(3 * index, 3 * index + 3);
      if (build === null || ours === null) continue;
      const before = this.#comparisons.get(old.prefix);
      const theirs = `${build} ${checkpoint}`;
      if (before?.theirs !== theirs) this.#comparisons.set(old.prefix, { theirs, ours });
      else if (before.ours !== ours) {
        await this.#remove(old);
        removed.push(old.prefix);
      }
    }
    return removed;
  }

  /** The keys that identify the version go last: an interrupted removal is continued by a later one. */
  async #remove({ prefix, keys: { build, checkpoint, complete } }: Old): Promise<void> {
    await this.#redis.remove([complete]);
    for await (const keys of this.#redis.scan(`${prefix}*`, STEP)) {
      await this.#redis.remove(keys.filter((key) => key !== build && key !== checkpoint));
    }
    await this.#redis.remove([build, checkpoint]);
    this.#comparisons.delete(prefix);
  }
}

function oldOf(prefix: string, successor: ReadModelName): Old {
  return { prefix, keys: projectionKeysUnder(prefix), successor: projectionKeys(successor).checkpoint };
}

function versionsUpTo(last: number): number[] {
  return Array.from({ length: last }, (_, index) => index + 1);
}
