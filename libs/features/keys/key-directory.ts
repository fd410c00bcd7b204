import type { DomainEvent } from '#libs/kernel/event.ts';
import { Fault, storeUnavailable } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { userProjection } from '#libs/features/users/index.ts';
import type { User } from '#libs/features/users/index.ts';
import { entityKeys, streamName } from '#libs/platform/readmodel/index.ts';
import type { Projection } from '#libs/platform/readmodel/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import { keyIdOf } from './key-form.ts';
import { keyOwnerKeys } from './keys.keys.ts';
import { keyProjection } from './keys.projection.ts';
import type { KeyState } from './key.decider.ts';
import { isWorking, knownKey } from './known-key.ts';
import type { FoundKey, KnownKey } from './known-key.ts';

/** A key that is known to be somebody's. */
export interface KeyToCheck {
  readonly organizationId: EntityId;
  readonly keyId: EntityId;
  readonly principalType: 'user' | 'service';
  readonly principalId: EntityId;
}

const CHECKED_AT_ONCE = 256;
const LOG_READS_AT_ONCE = 16;

/**
 * Looks keys up in the read model or in the log: either store is enough to know a key. Only the log can say
 * that there is no such key, for the read model may not have it yet.
 */
export class KeyDirectory {
  readonly #platform: Pick<Platform, 'redis' | 'readModel' | 'store'>;

  constructor(platform: Pick<Platform, 'redis' | 'readModel' | 'store'>) {
    this.#platform = platform;
  }

  /**
   * @param options.logFirst asks the log before Redis, for when Redis is known to be away
   * @returns null for a key that does not work, whatever the reason
   * @throws `Fault` `store_unavailable` when it cannot be known
   */
  async byDigest(digest: string, { logFirst = false } = {}): Promise<KnownKey | null> {
    const id = keyIdOf(digest);
    const fromLog = (): Promise<FoundKey> => this.#inLog(id);
    const fromReadModel = (): Promise<FoundKey | null> => this.#inReadModel(id);
    let fault: unknown = storeUnavailable('event store');
    for (const look of logFirst ? [fromLog, fromReadModel] : [fromReadModel, fromLog]) {
      try {
        const found = await look();
        if (found !== null) return knownKey(found, digest);
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        fault = error;
      }
    }
    throw fault;
  }

  /**
   * Whether each of these keys, whose principals are known, works now. Many are read in few round trips.
   *
   * @throws `Fault` `store_unavailable` when it cannot be known
   */
  async areWorking(keys: readonly KeyToCheck[]): Promise<readonly boolean[]> {
    const distinct = [...new Map(keys.map((key) => [key.keyId, key])).values()];
    const working = new Map<EntityId, boolean>();
    for (let from = 0; from < distinct.length; from += CHECKED_AT_ONCE) {
      const some = distinct.slice(from, from + CHECKED_AT_ONCE);
      const found = await this.#manyInReadModel(some);
      // Not there is no answer: the read model may be behind, or have been emptied.
      const missing = some.filter((_, index) => found[index] === null);
      for (const [id, one] of await this.#manyInLog(missing)) working.set(id, isWorking(one, Date.now()));
      for (const [index, one] of found.entries()) {
        const id = some[index]?.keyId;
        if (id !== undefined && one !== null) working.set(id, isWorking(one, Date.now()));
      }
    }
    return keys.map(({ keyId }) => working.get(keyId) === true);
  }

  async #manyInReadModel(keys: readonly KeyToCheck[]): Promise<(FoundKey | null)[]> {
    const wanted = keys.flatMap(({ organizationId, keyId, principalId }) => [
      entityKeys(keyProjection.noun, organizationId, keyId),
      entityKeys(userProjection.noun, organizationId, principalId),
    ]);
    const snapshots = await this.#platform.readModel.snapshots(wanted);
    return keys.map(({ principalType }, index) => {
      // As in `#snapshot`: written by the projections' own folds.
      const key = (snapshots[2 * index]?.state ?? null) as KeyState;
      const user = (snapshots[2 * index + 1]?.state ?? null) as User | null;
      return key === null || (principalType === 'user' && user === null) ? null : { key, user };
    });
  }

  async #manyInLog(keys: readonly KeyToCheck[]): Promise<Map<EntityId, FoundKey>> {
    const found = new Map<EntityId, FoundKey>();
    const waiting = keys.values();
    const read = async (): Promise<void> => {
      // Shared by all: each takes the next that nobody has taken.
      for (const { keyId } of waiting) found.set(keyId, await this.#inLog(keyId));
    };
    await Promise.all(Array.from({ length: LOG_READS_AT_ONCE }, read));
    return found;
  }

  async #inLog(id: EntityId): Promise<FoundKey> {
    const key = await this.#fold(keyProjection, id);
    if (key === null || key === 'withdrawn' || key.principal.type !== 'user') return { key, user: null };
    return { key, user: await this.#fold(userProjection, key.principal.id) };
  }

  /** @returns null if it does not have all that is needed */
  async #inReadModel(id: EntityId): Promise<FoundKey | null> {
    const { redis } = this.#platform;
    const { members } = keyOwnerKeys(id);
    const [organizationId] = await redis.send(members, (node) => node.hkeys(members));
    if (organizationId === undefined) return null;
    const key = await this.#snapshot(keyProjection, organizationId, id);
    if (key === null || key === 'withdrawn') return null;
    if (key.principal.type !== 'user') return { key, user: null };
    const user = await this.#snapshot(userProjection, organizationId, key.principal.id);
    return user && { key, user };
  }

  async #fold<State, E extends DomainEvent>({ noun, codec, fold }: Projection<State, E>, id: EntityId): Promise<State> {
    let state = fold.initialState;
    for await (const stored of this.#platform.store.readStream(streamName(noun, id))) {
      const event = codec.decode(stored);
      if (event !== null) state = fold.evolve(state, event);
    }
    return state;
  }

  async #snapshot<State, E extends DomainEvent>(
    { noun, fold }: Projection<State, E>,
    organizationId: EntityId,
    id: EntityId,
  ): Promise<State> {
    const [snapshot] = await this.#platform.readModel.snapshots([entityKeys(noun, organizationId, id)]);
    // Written by the projection's own fold, under keys that carry the version of its shape.
    return snapshot ? (snapshot.state as State) : fold.initialState;
  }
}
