import { LRUCache } from 'lru-cache';
import { digestOf, isWellFormedApiKey, API_KEY_PREFIX } from './api-key.ts';
import type { Authenticator, Principal } from './auth.ts';

export interface KnownKey {
  readonly principal: Principal;
  /** Unix milliseconds; absent for a key that does not expire. */
  readonly expiresAt?: number | undefined;
}

/**
 * Port: the keys that are valid now.
 *
 * Guarantees: `null` for unknown and revoked keys; throws `storeUnavailable` when it cannot know.
 * Omits: expiry (the caller compares `expiresAt`), and caching.
 */
export interface KeyDirectory {
  byDigest(sha256: string): Promise<KnownKey | null>;
}

export interface CachingAuthenticator extends Authenticator {
  /** A key was revoked or changed: forgets it, also where a look-up is under way. */
  forget(sha256: string): void;
  /** Forgets everything, as after a lost connection to whoever announces revocations. */
  clear(): void;
}

interface CacheOptions {
  readonly max?: number;
  /** Upper bound, in milliseconds, for serving a revoked key when its announcement was lost. */
  readonly ttlMs?: number;
  readonly unknownTtlMs?: number;
  readonly now?: () => number;
}

const UNKNOWN = Symbol('unknown key');

/** Authentication for the read path: a SHA-256 and one map look-up; the directory only for new keys. */
export function cachingAuthenticator(directory: KeyDirectory, options: CacheOptions = {}): CachingAuthenticator {
  const { max = 10_000, ttlMs = 30_000, unknownTtlMs = 2_000, now = Date.now } = options;
  const cache = new LRUCache<string, KnownKey | typeof UNKNOWN>({ max, ttl: ttlMs, ttlResolution: 100 });
  const pending = new Map<string, Promise<Principal | null>>();
  let generation = 0;

  function valid(known: KnownKey | typeof UNKNOWN): Principal | null {
    if (known === UNKNOWN) return null;
    return known.expiresAt !== undefined && known.expiresAt <= now() ? null : known.principal;
  }

  async function lookUp(digest: string): Promise<Principal | null> {
    const before = generation;
    const known = (await directory.byDigest(digest)) ?? UNKNOWN;
    // A revocation that came in meanwhile may be newer than this answer: use it once, keep it not.
    if (before === generation) cache.set(digest, known, { ttl: known === UNKNOWN ? unknownTtlMs : ttlMs });
    return valid(known);
  }

  /** One look-up per key at a time, whatever the number of requests that wait for it. */
  function mergedLookUp(digest: string): Promise<Principal | null> {
    const running = pending.get(digest);
    if (running) return running;
    const started = lookUp(digest).finally(() => {
      if (pending.get(digest) === started) pending.delete(digest);
    });
    pending.set(digest, started);
    return started;
  }

  return {
    authenticate(key) {
      if (!key.startsWith(API_KEY_PREFIX)) return null;
      const digest = digestOf(key);
      const known = cache.get(digest);
      if (known !== undefined) return valid(known);
      return isWellFormedApiKey(key) ? mergedLookUp(digest) : null;
    },
    forget(digest) {
      generation += 1;
      pending.delete(digest);
      cache.delete(digest);
    },
    clear() {
      generation += 1;
      pending.clear();
      cache.clear();
    },
  };
}
