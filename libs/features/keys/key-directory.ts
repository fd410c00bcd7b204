import type { DomainEvent } from '#libs/kernel/event.ts';
import { Fault, storeUnavailable } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { userProjection } from '#libs/features/users/index.ts';
import { entityKeys, streamName } from '#libs/platform/readmodel/index.ts';
import type { Projection } from '#libs/platform/readmodel/index.ts';
import { guarded } from '#libs/platform/redis/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import { keyIdOf } from './key-form.ts';
import { keyOwnerKeys } from './keys.keys.ts';
import { keyProjection } from './keys.projection.ts';
import { knownKey } from './known-key.ts';
import type { FoundKey, KnownKey } from './known-key.ts';

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

  async #inLog(id: EntityId): Promise<FoundKey> {
    const key = await this.#fold(keyProjection, id);
    if (key === null || key === 'withdrawn' || key.principal.type !== 'user') return { key, user: null };
    return { key, user: await this.#fold(userProjection, key.principal.id) };
  }

  /** @returns null if it does not have all that is needed */
  async #inReadModel(id: EntityId): Promise<FoundKey | null> {
    const { redis } = this.#platform;
    const [organizationId] = await guarded(redis.hkeys(keyOwnerKeys(id).members));
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
