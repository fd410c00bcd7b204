import { LRUCache } from 'lru-cache';

import type { EntityId } from '#libs/kernel/ids.ts';
import { digestOf } from '#libs/platform/http/index.ts';
import type { Authenticator, Principal } from '#libs/platform/http/index.ts';

import type { KeyChange, KeyMemory } from './key-changes.ts';
import type { KeyDirectory } from './key-directory.ts';
import { canBeKey, isSameDigest, keyIdOf } from './key-form.ts';
import type { KnownKey } from './known-key.ts';

/** Changes are announced; this bounds what a lost announcement can do. */
const KNOWN_TTL_MS = 30_000;
/** While announcements cannot be heard, a revocation by another process is seen this late. */
const DEAF_TTL_MS = 1_000;
const UNKNOWN_TTL_MS = 2_000;
/** A revoked key stays revoked, whatever a read model that lags behind says. */
const REVOKED_TTL_MS = 10 * 60_000;
const MAX_KEYS = 10_000;

/**
 * Authentication for every request: a hash and a look into memory, without a promise. The directory is asked
 * only for keys that are new to this process, once for all that wait for the same one.
 *
 * Guarantees: a key that expired or was revoked through this process is refused from then on; one that was
 * revoked elsewhere as soon as that is heard (see `KeyChanges`). Memory is bounded, and junk cannot push
 * known keys out of it.
 */
export class KeyAuthenticator implements Authenticator, KeyMemory {
  readonly #directory: Pick<KeyDirectory, 'byDigest'>;
  readonly #now: () => number;
  readonly #known = new LRUCache<EntityId, KnownKey>({ max: MAX_KEYS, ttl: KNOWN_TTL_MS, ttlResolution: 100 });
  readonly #refused = new LRUCache<EntityId, 'revoked' | 'unknown'>({
    max: MAX_KEYS,
    ttl: UNKNOWN_TTL_MS,
    ttlResolution: 100,
  });
  readonly #pending = new Map<EntityId, Promise<Principal | null>>();
  #hears = false;
  /** Counts what was heard: an answer that was asked for before is not kept. */
  #generation = 0;

  constructor(directory: Pick<KeyDirectory, 'byDigest'>, { now = Date.now }: { now?: () => number } = {}) {
    this.#directory = directory;
    this.#now = now;
  }

  /** See the port. Null for whatever is not the secret of a key that works now. */
  authenticate(presented: string): Principal | null | Promise<Principal | null> {
    const digest = digestOf(presented);
    const id = keyIdOf(digest);
    const known = this.#known.get(id);
    if (known !== undefined) return this.#principal(known, digest);
    if (this.#refused.has(id) || !canBeKey(presented)) return null;
    return this.#pending.get(id) ?? this.#lookUp(id, digest);
  }

  forget(change: KeyChange): void {
    this.#generation += 1;
    if (change.kind === 'user-deactivated') {
      this.#pending.clear();
      for (const [id, { principal }] of this.#known.entries()) {
        if (principal.principalType === 'user' && principal.principalId === change.userId) this.#known.delete(id);
      }
      return;
    }
    this.#pending.delete(change.keyId);
    this.#known.delete(change.keyId);
    if (change.kind === 'revoked') this.#refused.set(change.keyId, 'revoked', { ttl: REVOKED_TTL_MS });
    else if (this.#refused.get(change.keyId) === 'unknown') this.#refused.delete(change.keyId);
  }

  setHearing(hears: boolean): void {
    this.#hears = hears;
    this.#generation += 1;
    this.#pending.clear();
    this.#known.clear();
    // A revocation is for good: it alone survives, for a Redis that comes back may not know of it any more.
    for (const [id, why] of this.#refused.entries()) if (why === 'unknown') this.#refused.delete(id);
  }

  #lookUp(id: EntityId, digest: string): Promise<Principal | null> {
    const running = this.#ask(id, digest).finally(() => {
      if (this.#pending.get(id) === running) this.#pending.delete(id);
    });
    this.#pending.set(id, running);
    return running;
  }

  async #ask(id: EntityId, digest: string): Promise<Principal | null> {
    const generation = this.#generation;
    const known = await this.#directory.byDigest(digest, { logFirst: !this.#hears });
    if (generation === this.#generation) {
      if (known === null) this.#refused.set(id, 'unknown');
      else this.#known.set(id, known, { ttl: this.#hears ? KNOWN_TTL_MS : DEAF_TTL_MS });
    }
    return known && this.#principal(known, digest);
  }

  #principal(known: KnownKey, digest: string): Principal | null {
    if (!isSameDigest(known.digest, digest)) return null;
    return known.expiresAtMs !== null && known.expiresAtMs <= this.#now() ? null : known.principal;
  }
}
