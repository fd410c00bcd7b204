import { LRUCache } from 'lru-cache';

import type { EntityId } from '#libs/kernel/ids.ts';
import { digestOf, type Authenticator, type Principal } from '#libs/platform/http/index.ts';

import type { KeyChange, KeyChanges, KeyChangeSubscriber } from './key-changes.ts';
import type { KeyDirectory, KnownKey } from './key-directory.ts';
import { canBeKey, isSameDigest, keyIdOf } from './key-form.ts';

/** Maximum age of the read behind a decision, unless announcements prove that the key has not changed since. */
export const MAX_STALENESS_MS = 800;
/** Even with announcements, a key is read again after this time: the process that revoked it may have lost Redis. */
const REFRESH_AFTER_MS = 15_000;
/** Maximum age of a read while the log is unavailable. */
const MAX_AGE_MS = 35_000;
/** An unknown key is read at most once in this time. */
const UNKNOWN_TTL_MS = 2_000;
const REVOKED_TTL_MS = 10 * 60_000;
const MAX_KEYS = 10_000;

/** The result of one read of the log. `readAtMs`: its beginning, by the authenticator's clock. */
interface Reading {
  readonly key: KnownKey;
  readonly readAtMs: number;
  /** A presented digest that was found to be that of the key. */
  verified?: string;
}

interface PendingRead {
  readonly reading: Promise<Reading | null>;
  /** A change of the key was announced after the read began. */
  outdated: boolean;
}

interface AuthenticatorParts {
  readonly directory: Pick<KeyDirectory, 'byId'>;
  readonly changes: Pick<KeyChanges, 'areReceivedSince'>;
  /** Monotonic, in milliseconds. Default: `performance.now()`. */
  readonly clock?: () => number;
  /** Milliseconds since the Unix epoch. Default: `Date.now()`. */
  readonly now?: () => number;
}

/**
 * Authenticates callers from the log. Answers recently read keys from memory, synchronously, as long as announcements
 * prove that they have not changed; using a read older than 15 s starts another one in the background.
 *
 * Guarantees: refuses a key immediately once it has expired or this process has revoked it, and within a second once
 * another process has revoked it, if the announcement arrives or this process notices that announcements do not arrive.
 * Accepts no key on a read older than 35 s: throws `store_unavailable` if the log cannot be read. Memory is bounded, and
 * unknown keys do not evict known ones.
 */
export class KeyAuthenticator implements Authenticator, KeyChangeSubscriber {
  readonly #directory: Pick<KeyDirectory, 'byId'>;
  readonly #changes: Pick<KeyChanges, 'areReceivedSince'>;
  readonly #clock: () => number;
  readonly #now: () => number;
  readonly #known = new LRUCache<EntityId, Reading>({ max: MAX_KEYS });
  readonly #refused = new LRUCache<EntityId, 'revoked' | 'unknown'>({ max: MAX_KEYS, ttl: UNKNOWN_TTL_MS });
  readonly #pending = new Map<EntityId, PendingRead>();
  /** Reads that began before this time may lack changes whose announcements were missed. */
  #gapAtMs = -Infinity;

  constructor({ directory, changes, clock = () => performance.now(), now = Date.now }: AuthenticatorParts) {
    this.#directory = directory;
    this.#changes = changes;
    this.#clock = clock;
    this.#now = now;
  }

  /** See the port. */
  authenticate(presented: string, digest = digestOf(presented)): Principal | null | Promise<Principal | null> {
    const id = keyIdOf(digest);
    const current = this.#current(id);
    if (current !== undefined) return this.#principalOf(current, digest);
    if (this.#refused.has(id) || !canBeKey(presented)) return null;
    return this.#read(id).then((reading) => this.#principalOf(reading, digest));
  }

  /** See the port. */
  isKnown(presented: string): boolean {
    const digest = digestOf(presented);
    const reading = this.#known.get(keyIdOf(digest));
    return reading !== undefined && isSameDigest(reading.key.digest, digest);
  }

  /** As `authenticate`, for a caller that presented the key earlier, for example with a ticket. */
  principal(id: EntityId): Principal | null | Promise<Principal | null> {
    const current = this.#current(id);
    if (current !== undefined) return this.#principalOf(current);
    if (this.#refused.has(id)) return null;
    return this.#read(id).then((reading) => this.#principalOf(reading));
  }

  /** As `principal`, with the age of the read behind it in milliseconds. */
  async verify(id: EntityId): Promise<{ readonly principal: Principal; readonly ageMs: number } | null> {
    const reading = this.#current(id) ?? (this.#refused.has(id) ? null : await this.#read(id));
    const principal = this.#principalOf(reading);
    return reading && principal && { principal, ageMs: this.#clock() - reading.readAtMs };
  }

  onChange(change: KeyChange): void {
    if (change.kind === 'user-deactivated') {
      // The owner of a key is unknown until its read has finished.
      for (const pending of this.#pending.values()) pending.outdated = true;
      for (const [id, { key }] of this.#known.entries()) {
        if (key.principal.principalType === 'user' && key.principal.principalId === change.userId) {
          this.#known.delete(id);
        }
      }
      return;
    }
    const { keyId } = change;
    const pending = this.#pending.get(keyId);
    if (pending !== undefined) pending.outdated = true;
    if (change.kind === 'revoked') {
      this.#known.delete(keyId);
      this.#refused.set(keyId, 'revoked', { ttl: REVOKED_TTL_MS });
      return;
    }
    // A rotated key still works: it is read again, but remains known.
    const reading = this.#known.get(keyId);
    if (reading !== undefined) this.#known.set(keyId, { ...reading, readAtMs: -Infinity });
    if (this.#refused.get(keyId) === 'unknown') this.#refused.delete(keyId);
  }

  onGap(): void {
    this.#gapAtMs = this.#clock();
    for (const pending of this.#pending.values()) pending.outdated = true;
    for (const [id, reason] of this.#refused.entries()) if (reason === 'unknown') this.#refused.delete(id);
  }

  /** A read that is recent enough to decide about the key; undefined if there is none. */
  #current(id: EntityId): Reading | undefined {
    const reading = this.#known.get(id);
    if (reading === undefined || reading.readAtMs <= this.#gapAtMs) return undefined;
    const age = this.#clock() - reading.readAtMs;
    if (age >= MAX_STALENESS_MS) {
      if (age >= MAX_AGE_MS || !this.#changes.areReceivedSince(reading.readAtMs, MAX_STALENESS_MS)) return undefined;
      // A failure is reported once this read is too old and a caller awaits the next one.
      if (age >= REFRESH_AFTER_MS) this.#read(id).catch(() => undefined);
    }
    return reading;
  }

  /** One read for all callers that wait for the same key. */
  async #read(id: EntityId): Promise<Reading | null> {
    for (;;) {
      const pending = this.#pending.get(id) ?? this.#beginRead(id);
      const reading = await pending.reading;
      if (!pending.outdated) return reading;
    }
  }

  #beginRead(id: EntityId): PendingRead {
    const readAtMs = this.#clock();
    const pending: PendingRead = {
      outdated: false,
      reading: this.#directory
        .byId(id)
        .then((key) => {
          const reading = key && { key, readAtMs };
          if (!pending.outdated) this.#remember(id, reading);
          return reading;
        })
        .finally(() => this.#pending.delete(id)),
    };
    this.#pending.set(id, pending);
    return pending;
  }

  #remember(id: EntityId, reading: Reading | null): void {
    if (reading !== null) {
      this.#known.set(id, reading);
      return;
    }
    this.#known.delete(id);
    if (!this.#refused.has(id)) this.#refused.set(id, 'unknown');
  }

  /** @param digest of the presented secret, if the caller presented one */
  #principalOf(reading: Reading | null, digest?: string): Principal | null {
    if (reading === null) return null;
    // One object for all requests of a connection, so that most are compared by their address.
    if (digest !== undefined && reading.verified !== digest) {
      if (!isSameDigest(reading.key.digest, digest)) return null;
      reading.verified = digest;
    }
    const { principal } = reading.key;
    return principal.expiresAtMs !== null && principal.expiresAtMs <= this.#now() ? null : principal;
  }
}
