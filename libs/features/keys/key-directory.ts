import { storeUnavailable } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { isActiveUser, userEntity, type User } from '#libs/features/users/index.ts';
import type { Principal } from '#libs/platform/http/index.ts';
import { FairSemaphore } from '#libs/platform/lifecycle/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { foldStream } from '#libs/platform/streams/index.ts';

import { keyEntity } from './key.read.ts';
import { endOf, type KeyState } from './key.ts';

const READS_AT_ONCE = 32;
/** Waiting for the semaphore, reading a key and reading its user together fit in the 5 s that a request may take. */
const READ = { deadlineMs: 2_000 };
const MAX_WAIT_MS = 1_000;

/** A key that is not revoked and whose user, if any, is active. It may have expired. */
export interface KnownKey {
  readonly digest: string;
  readonly principal: Principal;
}

/**
 * Reads keys from the log. Their streams and those of users are short, so both are read whole, from the leader.
 * Authentication uses no read model, because a read model may lag, be rebuilt or be lost.
 */
export class KeyDirectory {
  readonly #store: Platform['store'];
  readonly #reads = new FairSemaphore({ permits: READS_AT_ONCE });

  constructor({ store }: Pick<Platform, 'store'>) {
    this.#store = store;
  }

  /**
   * @returns null for a key that is unknown, revoked or withdrawn, or whose user is not active
   * @throws `Fault` `store_unavailable` when the log cannot be read
   */
  async byId(id: EntityId): Promise<KnownKey | null> {
    const late = this.#reads.isFree ? undefined : AbortSignal.timeout(MAX_WAIT_MS);
    try {
      return await this.#reads.run(() => this.#read(id), late && { signal: late });
    } catch (error) {
      throw late !== undefined && error === late.reason ? storeUnavailable('event store', error) : error;
    }
  }

  async #read(id: EntityId): Promise<KnownKey | null> {
    const key = await foldStream(this.#store, keyEntity.projection, id, READ);
    if (key === null || key === 'withdrawn' || key.principal.type !== 'user') return knownKey(key, null);
    return knownKey(key, await foldStream(this.#store, userEntity.projection, key.principal.id, READ));
  }
}

/**
 * @param user of a key whose principal is a user
 * @returns null for a key that is unknown, revoked or withdrawn, or whose user is not active
 */
export function knownKey(key: KeyState, user: User | null): KnownKey | null {
  if (key === null || key === 'withdrawn' || key.revokedAt !== null) return null;
  if (key.principal.type === 'user' && !isActiveUser(user, key.organizationId)) return null;
  const end = endOf(key);
  const isMember = key.access === 'participation';
  const uploads = isMember && key.scopes.includes('write') ? ['upload'] : [];
  return {
    digest: key.digest,
    principal: {
      organizationId: key.organizationId,
      principalType: key.principal.type,
      principalId: key.principal.id,
      keyId: key.id,
      scopes: new Set([...key.scopes, ...uploads]),
      isMember,
      expiresAtMs: end === null ? null : Date.parse(end),
    },
  };
}
