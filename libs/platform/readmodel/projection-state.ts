import { randomUUID } from 'node:crypto';

import type { GlobalPosition } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import { decodePosition, encodePosition } from '#libs/platform/eventstore/index.ts';
import { bytesOf, FunctionLibrary, textsOf } from '#libs/platform/redis/index.ts';
import type { RedisClient } from '#libs/platform/redis/index.ts';

import { LogWitness } from './log-witness.ts';
import { MarkedReads } from './marked-reads.ts';
import { ownerOf, PROJECTION_KEYS, READ_MODEL_PREFIX } from './read-model.keys.ts';
import { READ_MODEL_FUNCTIONS } from './read-model.ts';

/** Where a projector starts: which building of the read models it joins, and how far that has come. */
export interface ProjectionStart {
  readonly build: string;
  readonly from: GlobalPosition | 'start';
}

const CLEAR_STEP = 1_000;

/**
 * What is known of the read models as a whole. Several projectors may share it: a checkpoint is only a
 * hint, and one that is set back costs duplicates, which the guard drops.
 *
 * All methods throw `Fault` `store_unavailable`.
 */
export class ProjectionState {
  readonly #redis: RedisClient;
  readonly #marked: MarkedReads;
  readonly #functions: FunctionLibrary;
  readonly witness: LogWitness;

  constructor(redis: RedisClient) {
    this.#redis = redis;
    this.witness = new LogWitness(redis);
    this.#marked = new MarkedReads(redis);
    this.#functions = new FunctionLibrary(redis, READ_MODEL_FUNCTIONS);
  }

  /** Joins the current building of the read models, or begins one if they were emptied. */
  async begin(): Promise<ProjectionStart> {
    await this.#redis.send(PROJECTION_KEYS.build, (node) => node.set(PROJECTION_KEYS.build, randomUUID(), 'NX'));
    const [build, checkpoint] = textsOf(await this.#redis.values([PROJECTION_KEYS.build, PROJECTION_KEYS.checkpoint]));
    if (typeof build !== 'string') throw new Fault('not_caught_up', 'The read models were emptied just now');
    return { build, from: typeof checkpoint === 'string' ? decodePosition(checkpoint) : 'start' };
  }

  /** @returns false if the read models are no longer those of `build`: begin again */
  async save(build: string, position: GlobalPosition | null, complete: boolean): Promise<boolean> {
    const [saved] = await this.#functions.callAll([
      {
        name: 'parley_checkpoint_v4',
        keys: [PROJECTION_KEYS.build, PROJECTION_KEYS.checkpoint, PROJECTION_KEYS.complete],
        args: [build, position === null ? '' : encodePosition(position), complete ? '1' : '0'],
      },
    ]);
    return saved === 1;
  }

  /** Whether the read models are still those of `build`. */
  async isCurrent(build: string): Promise<boolean> {
    return (await this.#redis.send(PROJECTION_KEYS.build, (node) => node.get(PROJECTION_KEYS.build))) === build;
  }

  /**
   * Whether the read models hold the whole log. While they do not (a first start on an old log, an emptied
   * Redis, a rebuild), "not there" may mean "not yet", and a list may lack entries.
   */
  async isComplete(): Promise<boolean> {
    const [complete] = await this.#marked.read([PROJECTION_KEYS.complete]);
    return Boolean(complete);
  }

  /**
   * Reads a key and completeness at one and the same moment: with two reads, what is written between them,
   * completeness last, would seem not to exist.
   */
  async valueOf(key: string): Promise<{ readonly value: Buffer | null; readonly isComplete: boolean }> {
    const [complete = null, value = null] = bytesOf(await this.#marked.read([PROJECTION_KEYS.complete, key]));
    return { value, isComplete: complete !== null };
  }

  /**
   * Runs a read of lists, of which nobody can tell whether they lack entries.
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
    const [build = null, complete] = textsOf(
      await this.#redis.values([PROJECTION_KEYS.build, PROJECTION_KEYS.complete]),
    );
    if (typeof complete !== 'string') throw beingBuilt();
    return build;
  }

  /**
   * Throws the read models away. Their completeness goes first, so that from then on nobody takes a
   * missing entity for one that does not exist. Others write meanwhile: what they leave must not be half of
   * what was there before. So a list goes as a whole, and no key of an entity without the entity's revision,
   * which makes whoever writes it next fold it from its beginning.
   *
   * @returns how many keys were removed
   */
  async clear(): Promise<number> {
    await this.#redis.remove(Object.values(PROJECTION_KEYS));
    let removed = 0;
    for await (const keys of this.#redis.scan(`${READ_MODEL_PREFIX}*`, CLEAR_STEP)) {
      removed += await this.#remove(keys);
    }
    // Once more: a projector may have begun a building of its own while keys were still being removed.
    await this.#redis.remove(Object.values(PROJECTION_KEYS));
    return removed;
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
      name: 'parley_remove_list_v4',
      keys: [members],
      args: [indexPrefix, ...found],
    }));
    const replies = await this.#functions.callAll(removals);
    return replies.reduce<number>((sum, reply) => sum + Number(reply), removed);
  }
}

function beingBuilt(): Fault {
  return new Fault('not_caught_up', 'The read models are being built', { retryAfterSeconds: 2 });
}
