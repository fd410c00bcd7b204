import { randomUUID } from 'node:crypto';

import type { GlobalPosition } from '#libs/kernel/event.ts';
import { decodePosition, encodePosition } from '#libs/platform/eventstore/index.ts';
import type { ShareEnd, ShareMark } from '#libs/platform/eventstore/index.ts';
import { FunctionLibrary } from '#libs/platform/redis/index.ts';
import type { RedisClient } from '#libs/platform/redis/index.ts';

import { PROJECTION_KEYS } from './read-model.keys.ts';

const FUNCTIONS = new URL('./lua/projection-shares.lua', import.meta.url);

/** How far a build of the read models has come, where projectors share the work. */
export interface SavedShares {
  /** Names the handover from the log to the shares; what belongs to another one is not good here. */
  readonly handover: string;
  readonly marks: readonly ShareMark[];
}

/**
 * The checkpoint of projectors that share the streams: one mark for each share, and over all of them the position up
 * to which everything is applied, which is the checkpoint that everybody else reads. All of it is kept beside the
 * build, so a Redis that loses writes loses what was said of them as well.
 *
 * All methods throw `Fault` `store_unavailable`.
 */
export class ProjectionShares {
  readonly #redis: RedisClient;
  readonly #functions: FunctionLibrary;

  constructor(redis: RedisClient) {
    this.#redis = redis;
    this.#functions = new FunctionLibrary(redis, FUNCTIONS);
  }

  /** Null while the build is kept up from the log alone. */
  async read(build: string): Promise<SavedShares | null> {
    const { handover, ...shares } = await this.#redis.send(PROJECTION_KEYS.shares, (node) =>
      node.hgetall(PROJECTION_KEYS.shares),
    );
    // Older versions empty read models without this key: what they leave belongs to no build any more.
    if (handover === undefined || !handover.startsWith(`${build}/`)) return null;
    return { handover, marks: Object.entries(shares).map(([share, text]) => markOf(share, text)) };
  }

  /**
   * Once the whole log up to `position` is in the read models, and was read after `ends` were asked for: from now on
   * they are kept up by shares.
   *
   * @param seen the handover that is to be replaced; null for none
   * @returns false if somebody else was quicker, or the read models were emptied: look again
   */
  async handOver(
    build: string,
    seen: string | null,
    { position, ends }: { readonly position: GlobalPosition; readonly ends: readonly ShareEnd[] },
  ): Promise<boolean> {
    const { build: buildKey, checkpoint, complete, shares } = PROJECTION_KEYS;
    const [done] = await this.#functions.callAll([
      {
        name: 'parley_hand_over_v1',
        keys: [buildKey, checkpoint, complete, shares],
        args: [
          build,
          seen ?? '',
          `${build}/${randomUUID()}`,
          encodePosition(position),
          ...ends.flatMap(({ share, mark }) => [share, mark]),
        ],
      },
    ]);
    return done === 1;
  }

  /**
   * Saves marks, monotonically: what somebody has saved further on stays.
   *
   * @param known the marks that the caller has saved or read before, by share
   * @returns the checkpoint; null if the caller has to begin again from what is saved, because the read models, the
   *   handover or the marks in Redis are not those that it knew
   */
  async save(
    build: string,
    handover: string,
    { marks, known }: { readonly marks: readonly ShareMark[]; readonly known: ReadonlyMap<string, string> },
  ): Promise<GlobalPosition | null> {
    const [checkpoint] = await this.#functions.callAll([
      {
        name: 'parley_reach_v1',
        keys: [PROJECTION_KEYS.build, PROJECTION_KEYS.checkpoint, PROJECTION_KEYS.shares],
        args: [
          build,
          handover,
          ...marks.flatMap(({ share, mark, position }) => [
            share,
            known.get(share) ?? '0',
            mark,
            encodePosition(position),
          ]),
        ],
      },
    ]);
    return typeof checkpoint === 'string' ? decodePosition(checkpoint) : null;
  }
}

function markOf(share: string, text: string): ShareMark {
  const [mark = '', position = ''] = text.split(' ');
  return { share, mark, position: decodePosition(position) };
}
