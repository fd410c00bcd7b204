import type { EntityId } from '#libs/kernel/ids.ts';
import { recentlyUsed } from '#libs/platform/caches/index.ts';
import { type Authenticator, digestOf, type Principal } from '#libs/platform/http/index.ts';
import {
  type AnnouncedChange,
  type Announcements,
  FreshReads,
  type Reading,
} from '#libs/platform/announcements/index.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import { isActiveUser, type User, userEntity } from '#libs/features/users/index.ts';
import { FairSemaphore } from '#libs/platform/lifecycle/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { foldStream } from '#libs/platform/streams/index.ts';

import { canBeKey, isSameDigest, keyIdOf } from './key-form.ts';
import { keyEntity } from './key.read.ts';
import { endOf, type KeyState } from './key.ts';

/** An unknown key is read at most once in this time. */
const UNKNOWN_TTL_MS = 2_000;
const REVOKED_TTL_MS = 10 * 60_000;
const MAX_KEYS = 10_000;

interface AuthenticatorParts {
  readonly directory: Pick<KeyDirectory, 'byId'>;
  readonly announcements: Pick<Announcements, 'areReceivedSince' | 'listen'>;
  /** Monotonic, in milliseconds. Default: `performance.now()`. */
  readonly clock?: () => number;
  /** Milliseconds since the Unix epoch. Default: `Date.now()`. */
  readonly now?: () => number;
}

/** A key, and the presented digest that was found to be its own. */
interface ReadKey extends KnownKey {
  verified?: string;
}

/**
 * Authenticates callers from the log. Answers recently read keys from memory, synchronously, by the rules of `FreshReads`.
 *
 * Guarantees: refuses a key immediately once it has expired or this process has revoked it, and within a second once
 * another process has revoked it, if the announcement arrives or this process notices that announcements do not arrive.
 * Accepts no key on a read older than 35 s: throws `store_unavailable` if the log cannot be read. Memory is bounded, and
 * unknown keys do not evict known ones.
 */
export class KeyAuthenticator implements Authenticator {
  readonly #now: () => number;
  readonly #reads: FreshReads<ReadKey>;
  readonly #refused = recentlyUsed<EntityId, 'revoked' | 'unknown'>(MAX_KEYS, { ttl: UNKNOWN_TTL_MS });

  constructor({ directory, announcements, clock, now = Date.now }: AuthenticatorParts) {
    this.#now = now;
    this.#reads = new FreshReads<ReadKey>({
      read: (id) => directory.byId(id),
      announcements,
      onChange: (change) => this.#onChange(change),
      onGap: () => this.#onGap(),
      clock,
      max: MAX_KEYS,
      onRead: (id, key) => {
        if (key === null && !this.#refused.has(id)) this.#refused.set(id, 'unknown');
      },
    });
  }

  /** See the port. */
  authenticate(presented: string, digest = digestOf(presented)): Principal | null | Promise<Principal | null> {
    const id = keyIdOf(digest);
    const current = this.#reads.current(id);
    if (current !== undefined) return this.#principalOf(current, digest);
    if (this.#refused.has(id) || !canBeKey(presented)) return null;
    return this.#reads.read(id).then((reading) => this.#principalOf(reading, digest));
  }

  /** See the port. */
  isKnown(presented: string): boolean {
    const digest = digestOf(presented);
    const reading = this.#reads.known(keyIdOf(digest));
    return reading !== undefined && isSameDigest(reading.value.digest, digest);
  }

  /** As `authenticate`, for a caller that presented the key earlier, for example with a ticket. */
  principal(id: EntityId): Principal | null | Promise<Principal | null> {
    const current = this.#reads.current(id);
    if (current !== undefined) return this.#principalOf(current);
    if (this.#refused.has(id)) return null;
    return this.#reads.read(id).then((reading) => this.#principalOf(reading));
  }

  /** As `principal`, with the age of the read behind it in milliseconds. */
  async verify(id: EntityId): Promise<{ readonly principal: Principal; readonly ageMs: number } | null> {
    const reading = this.#reads.current(id) ?? (this.#refused.has(id) ? null : await this.#reads.read(id));
    const principal = this.#principalOf(reading);
    return reading && principal && { principal, ageMs: this.#reads.age(reading) };
  }

  #onChange(change: AnnouncedChange): void {
    switch (change.kind) {
      case 'user-deactivated':
        return this.#reads.invalidateWhere(
          ({ principal }) => principal.principalType === 'user' && principal.principalId === change.userId,
        );
      case 'revoked':
        this.#reads.invalidate(change.keyId);
        return void this.#refused.set(change.keyId, 'revoked', { ttl: REVOKED_TTL_MS });
      case 'changed':
        // A rotated key still works: it is read again, but remains known.
        this.#reads.outdate(change.keyId);
        if (this.#refused.get(change.keyId) === 'unknown') this.#refused.delete(change.keyId);
        return;
      default:
        return;
    }
  }

  #onGap(): void {
    for (const [id, reason] of this.#refused.entries()) if (reason === 'unknown') this.#refused.delete(id);
  }

  /** @param digest of the presented secret, if the caller presented one */
  #principalOf(reading: Reading<ReadKey> | null, digest?: string): Principal | null {
    if (reading === null) return null;
    const key = reading.value;
    // All requests of a connection share an object, so that most are compared by their address.
    if (digest !== undefined && key.verified !== digest) {
      if (!isSameDigest(key.digest, digest)) return null;
      key.verified = digest;
    }
    const { principal } = key;
    return principal.expiresAtMs !== null && principal.expiresAtMs <= this.#now() ? null : principal;
  }
}

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
      throw late !== undefined && error === late.reason ? storeUnavailable('the event store', error) : error;
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
