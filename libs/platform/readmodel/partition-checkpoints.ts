import { randomUUID } from 'node:crypto';

import type { GlobalPosition } from '#libs/kernel/event.ts';
import {
  decodePosition,
  encodePosition,
  type PartitionCheckpoint,
  type PartitionEnd,
} from '#libs/platform/eventstore/index.ts';
import { FunctionLibrary, type RedisClient } from '#libs/platform/redis/index.ts';

import { groupsOf, PROJECTION_FUNCTIONS, type ProjectionStart } from './projection-state.ts';
import { partitionsKey, type ReadModelName } from './read-model.keys.ts';

/** How far builds of the read models have come, where projectors divide the partitions among them. */
export interface SavedPartitions {
  /** Names the handover from the log to the partitions; checkpoints of another one are not valid here. */
  readonly handover: string;
  readonly checkpoints: readonly PartitionCheckpoint[];
}

/** Longer than projectors pause in an upgrade. A projector without the hash starts from the log. */
const KEPT_SECONDS = 7 * 86_400;

/**
 * Checkpoints of partitions, for projectors that divide them: one checkpoint for each partition, and over all of them the
 * position up to which everything is applied, which is saved as the checkpoint of the categories. They belong to the
 * exact set of read models that a projector writes: during an upgrade, projectors with another version of one category
 * keep their own, and both raise the checkpoints of the categories that they have in common. All of it is kept beside
 * the builds, so a Redis that loses writes loses the checkpoints of these writes as well.
 *
 * All methods throw `Fault` `store_unavailable`.
 */
export class PartitionCheckpoints {
  readonly #redis: RedisClient;
  readonly #keys: readonly [string, ...string[]];
  readonly #functions: FunctionLibrary;

  constructor(redis: RedisClient, names: readonly ReadModelName[]) {
    this.#redis = redis;
    this.#keys = [partitionsKey(names), ...groupsOf(names)];
    this.#functions = new FunctionLibrary(redis, PROJECTION_FUNCTIONS);
  }

  /** Null while the builds are kept up to date from the log alone. */
  async read({ build }: Pick<ProjectionStart, 'build'>): Promise<SavedPartitions | null> {
    const [key] = this.#keys;
    const { handover, ...partitions } = await this.#redis.send(key, (node) => node.hgetall(key));
    if (handover === undefined || !handover.startsWith(`${build}/`)) return null;
    return {
      handover,
      checkpoints: Object.entries(partitions).map(([partition, text]) => checkpointOf(partition, text)),
    };
  }

  /**
   * Once the whole log up to `position` is in the read models, and was read after `ends` were read: from now on they
   * are kept up to date from the partitions.
   *
   * @param seen the handover that is to be replaced; null for none
   * @returns false if another projector was faster, or read models were deleted: read them again
   */
  async handOver(
    { build, builds }: ProjectionStart,
    seen: string | null,
    { position, ends }: { readonly position: GlobalPosition; readonly ends: readonly PartitionEnd[] },
  ): Promise<boolean> {
    const done = await this.#call('parley_partitions_hand_over_v1', [
      build,
      seen ?? '',
      `${build}/${randomUUID()}`,
      encodePosition(position),
      KEPT_SECONDS,
      builds.size,
      ...builds.values(),
      ...ends.flatMap(({ partition, checkpoint }) => [partition, checkpoint]),
    ]);
    return done === 1;
  }

  /**
   * Saves checkpoints, monotonically: later ones of other members stay.
   *
   * @param known the checkpoints that the caller has saved or read before, by partition
   * @returns the least position of all partitions; null if the caller has to begin again from what is saved, because
   *   the builds, the handover or the checkpoints in Redis are not those that it knew
   */
  async save(
    { builds }: ProjectionStart,
    handover: string,
    {
      checkpoints,
      known,
    }: { readonly checkpoints: readonly PartitionCheckpoint[]; readonly known: ReadonlyMap<string, string> },
  ): Promise<GlobalPosition | null> {
    const least = await this.#call('parley_partitions_save_v1', [
      handover,
      KEPT_SECONDS,
      builds.size,
      ...builds.values(),
      ...checkpoints.flatMap(({ partition, checkpoint, position }) => [
        partition,
        known.get(partition) ?? '0',
        checkpoint,
        encodePosition(position),
      ]),
    ]);
    return typeof least === 'string' ? decodePosition(least) : null;
  }

  async #call(name: string, args: readonly (string | number)[]): Promise<unknown> {
    const [reply] = await this.#functions.callAll([{ name, keys: [...this.#keys], args }]);
    return reply;
  }
}

function checkpointOf(partition: string, text: string): PartitionCheckpoint {
  const [checkpoint = '', position = ''] = text.split(' ');
  return { partition, checkpoint, position: decodePosition(position) };
}
