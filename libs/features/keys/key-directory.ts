import type { DomainEvent } from '#libs/kernel/event.ts';
import { Fault, storeUnavailable } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { userProjection } from '#libs/features/users/index.ts';
import type { User } from '#libs/features/users/index.ts';
import type { Principal } from '#libs/platform/http/index.ts';
import { entityKeys, streamName } from '#libs/platform/readmodel/index.ts';
import type { Projection } from '#libs/platform/readmodel/index.ts';
import { guarded } from '#libs/platform/redis/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import { isSameDigest, keyIdOf } from './key-form.ts';
import type { Key, KeyState } from './key.decider.ts';
import { endOf } from './key.decider.ts';
import { keyOwnerKeys } from './keys.keys.ts';
import { keyProjection } from './keys.projection.ts';

/** A key that is neither revoked nor somebody's who was deactivated. Whether it has expired, the clock says. */
export interface KnownKey {
  readonly digest: string;
  readonly principal: Principal;
  /** Milliseconds since the Unix epoch, or null if it does not expire. */
  readonly expiresAtMs: number | null;
}

interface Found {
  readonly key: KeyState;
  readonly user: User | null;
}

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
    const fromLog = (): Promise<Found> => this.#inLog(id);
    const fromReadModel = (): Promise<Found | null> => this.#inReadModel(id);
    let fault: unknown = storeUnavailable('event store');
    for (const look of logFirst ? [fromLog, fromReadModel] : [fromReadModel, fromLog]) {
      try {
        const found = await look();
        if (found !== null) return known(found, digest);
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        fault = error;
      }
    }
    throw fault;
  }

  async #inLog(id: EntityId): Promise<Found> {
    const key = await this.#fold(keyProjection, id);
    if (key === null || key === 'withdrawn' || key.principal.type !== 'user') return { key, user: null };
    return { key, user: await this.#fold(userProjection, key.principal.id) };
  }

  /** @returns null if it does not have all that is needed */
  async #inReadModel(id: EntityId): Promise<Found | null> {
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

function known({ key, user }: Found, digest: string): KnownKey | null {
  if (key === null || key === 'withdrawn' || key.revokedAt !== null) return null;
  if (!isSameDigest(key.digest, digest)) return null;
  if (key.principal.type === 'user' && !mayAct(user, key)) return null;
  const end = endOf(key);
  return {
    digest,
    expiresAtMs: end === null ? null : Date.parse(end),
    principal: {
      organizationId: key.organizationId,
      principalType: key.principal.type,
      principalId: key.principal.id,
      keyId: key.id,
      scopes: new Set(key.scopes),
    },
  };
}

function mayAct(user: User | null, key: Key): boolean {
  return user !== null && user.organizationId === key.organizationId && user.deactivatedAt === null;
}
