import { createHash, randomUUID } from 'node:crypto';

import type { GlobalPosition } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import { comparePositions, decodePosition, encodePosition } from '#libs/platform/eventstore/index.ts';
import { FunctionLibrary, textsOf, type RedisClient } from '#libs/platform/redis/index.ts';

import { LogWitness } from './log-witness.ts';
import {
  ownerOf,
  partitionsKey,
  projectionKeys,
  type ProjectionKeys,
  READ_MODELS_PREFIX,
  type ReadModelName,
  readModelPrefix,
} from './read-model.keys.ts';
import { READ_MODEL_FUNCTIONS } from './read-model.ts';

/** Where a projector starts: the builds of the read models that it joins, and how far these have come. */
export interface ProjectionStart {
  /** Names the builds of all categories together; changes when one of them does. */
  readonly build: string;
  /** By category. */
  readonly builds: ReadonlyMap<string, string>;
  /** By category, its checkpoint. */
  readonly checkpoints: ReadonlyMap<string, GlobalPosition | 'start'>;
  readonly from: GlobalPosition | 'start';
}

/** The Lua library of the functions that save progress. */
export const PROJECTION_FUNCTIONS = new URL('./lua/projection.lua', import.meta.url);

const CLEAR_STEP = 1_000;
/** The build of read models that are being deleted. It expires in case the process that deletes them dies. */
const DELETING = 'deleting';
const DELETING_EXPIRES_S = 60;

/**
 * How far the read models of several categories have come. Each category has its own build, checkpoint and completeness
 * mark. Several projectors may share them: a checkpoint is only a hint, and an older one costs duplicates, which the
 * revision guard drops.
 *
 * All methods throw `Fault` `store_unavailable`.
 */
export class ProjectionState {
  readonly #redis: RedisClient;
  readonly #names: readonly ReadModelName[];
  readonly #keys: readonly ProjectionKeys[];
  readonly #readModelFunctions: FunctionLibrary;
  readonly #functions: FunctionLibrary;
  readonly witness: LogWitness;

  constructor(redis: RedisClient, names: readonly ReadModelName[]) {
    this.#redis = redis;
    this.#names = names;
    this.#keys = names.map(projectionKeys);
    this.witness = new LogWitness(redis, names);
    this.#readModelFunctions = new FunctionLibrary(redis, READ_MODEL_FUNCTIONS);
    this.#functions = new FunctionLibrary(redis, PROJECTION_FUNCTIONS);
  }

  /** The state of some of the categories only. */
  only(categories: readonly string[]): ProjectionState {
    return new ProjectionState(
      this.#redis,
      this.#names.filter(({ category }) => categories.includes(category)),
    );
  }

  /** Joins the current build of each category, or begins one where the read models were deleted. */
  async begin(): Promise<ProjectionStart> {
    await Promise.all(
      this.#keys.map(({ build }) => this.#redis.send(build, (node) => node.set(build, randomUUID(), 'NX'))),
    );
    const found = textsOf(await this.#redis.values(this.#keys.flatMap(({ build, checkpoint }) => [build, checkpoint])));
    const builds = new Map<string, string>();
    const checkpoints = new Map<string, GlobalPosition | 'start'>();
    for (const [index, { category }] of this.#names.entries()) {
      const [build = null, checkpoint = null] = found.slice(2 * index, 2 * index + 2);
      if (build === null || build === DELETING) throw new Fault('not_caught_up', 'The read models are being deleted');
      builds.set(category, build);
      checkpoints.set(category, checkpoint === null ? 'start' : decodePosition(checkpoint));
    }
    return { build: digestOf(builds), builds, checkpoints, from: [...checkpoints.values()].reduce(earlier) };
  }

  /**
   * Saves how far all categories have come; the checkpoint of a category that is further ahead stays.
   *
   * @returns false if the read models are no longer those of `start`: begin again
   */
  async save({ builds }: ProjectionStart, position: GlobalPosition | null, complete: boolean): Promise<boolean> {
    const args = [position === null ? '' : encodePosition(position), complete ? '1' : '0', ...builds.values()];
    return (await this.#call('parley_projection_save_v1', args)) === 1;
  }

  /** Moves checkpoints back to `position`, where they are later. @returns as for {@link save} */
  async setBack({ builds }: ProjectionStart, position: GlobalPosition | 'start'): Promise<boolean> {
    const args = [position === 'start' ? '' : encodePosition(position), ...builds.values()];
    return (await this.#call('parley_projection_set_back_v1', args)) === 1;
  }

  async #call(name: string, args: readonly string[]): Promise<unknown> {
    const [reply] = await this.#functions.callAll([{ name, keys: groupsOf(this.#names), args }]);
    return reply;
  }

  /** Up to where the read models of all categories hold the log; null while one of them is being built. */
  async checkpoint(): Promise<GlobalPosition | null> {
    const [checkpoints, marks] = await Promise.all([
      this.#redis.values(this.#keys.map(({ checkpoint }) => checkpoint)),
      this.isComplete(),
    ]);
    const positions = textsOf(checkpoints).flatMap((text) => (text === null ? [] : [decodePosition(text)]));
    if (!marks || positions.length < this.#keys.length) return null;
    return positions.reduce((one, other) => (comparePositions(one, other) < 0 ? one : other));
  }

  /** Whether the read models of all categories hold the whole log. */
  async isComplete(): Promise<boolean> {
    const marks = textsOf(await this.#redis.values(this.#keys.map(({ complete }) => complete)));
    return marks.every((mark) => mark !== null);
  }

  /**
   * Deletes the read models. Their completeness marks go first, so that from then on a missing entity no longer means
   * that it does not exist; until the end no projector can begin a build, and mark it as complete. Other processes write
   * meanwhile, and must not leave a mixture with what was there before: so a list is removed as a whole, and no key of
   * an entity without the entity's revision, which makes the next writer fold it from its first event.
   *
   * @returns how many keys were removed
   */
  async clear(): Promise<number> {
    const others = this.#keys.flatMap(({ checkpoint, complete, witness }) => [checkpoint, complete, witness]);
    const prefixes = this.#names.map(readModelPrefix);
    await this.#markAsDeleting();
    await this.#redis.remove([partitionsKey(this.#names), ...others]);
    let removed = 0;
    const match = prefixes.length === 1 ? `${prefixes[0]}*` : `${READ_MODELS_PREFIX}*`;
    for await (const keys of this.#redis.scan(match, CLEAR_STEP)) {
      removed += await this.#remove(keys.filter((key) => prefixes.some((prefix) => key.startsWith(prefix))));
      await this.#markAsDeleting();
    }
    await this.#redis.remove(this.#keys.map(({ build }) => build));
    return removed;
  }

  async #markAsDeleting(): Promise<void> {
    await Promise.all(
      this.#keys.map(({ build }) =>
        this.#redis.send(build, (node) => node.set(build, DELETING, 'EX', DELETING_EXPIRES_S)),
      ),
    );
  }

  async #remove(keys: readonly string[]): Promise<number> {
    const entityKeys = new Set<string>();
    const lists = new Map<string, { readonly indexPrefix: string; readonly found: string[] }>();
    for (const key of keys) {
      const owner = ownerOf(key);
      if (owner?.kind === 'entity') for (const part of [key, ...Object.values(owner.keys)]) entityKeys.add(part);
      if (owner?.kind !== 'list') continue;
      const { members, indexPrefix } = owner.keys;
      const list = lists.get(members) ?? { indexPrefix, found: [] };
      lists.set(members, list);
      if (key !== members) list.found.push(key);
    }
    const removed = await this.#redis.remove([...entityKeys]);
    const removals = [...lists].map(([members, { indexPrefix, found }]) => ({
      name: 'parley_remove_list_v8',
      keys: [members],
      args: [indexPrefix, ...found],
    }));
    const replies = await this.#readModelFunctions.callAll(removals);
    return replies.reduce<number>((sum, reply) => sum + Number(reply), removed);
  }
}

/** The groups of keys that the functions in `projection.lua` take. */
export function groupsOf(names: readonly ReadModelName[]): string[] {
  return names.map(projectionKeys).flatMap(({ build, checkpoint, complete }) => [build, checkpoint, complete]);
}

function digestOf(builds: ReadonlyMap<string, string>): string {
  return createHash('sha256')
    .update(JSON.stringify([...builds].sort()))
    .digest('base64url');
}

export function earlier(one: GlobalPosition | 'start', other: GlobalPosition | 'start'): GlobalPosition | 'start' {
  if (one === 'start' || other === 'start') return 'start';
  return comparePositions(one, other) <= 0 ? one : other;
}
