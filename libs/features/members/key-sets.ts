import { LRUCache } from 'lru-cache';
import { z } from 'zod';

import { Fault } from '#libs/kernel/faults.ts';
import type { Fetcher } from '#libs/platform/fetch/index.ts';

import { publicKeyOf, UnusableKey, type VerificationKey, verificationKeyOf } from './public-keys.ts';
import type { PublicKey, TokenIssuer } from './token-issuer.ts';

/** A set is fetched again before it is used after this time. */
const FRESH_MS = 10 * 60_000;
/** How long a set is used whose address does not answer. */
const MAX_AGE_MS = 60 * 60_000;
/** Between two fetches of a set, whatever they brought and whatever tokens ask for. */
const COOLDOWN_MS = 30_000;
/** A request is answered within 5 s. */
const TIMEOUT_MS = 3_000;
const MAX_BYTES = 256 * 1024;
const MAX_KEYS = 100;
const MAX_SETS = 1_000;

const keySet = z.object({ keys: z.array(z.unknown()) });

interface FetchedSet {
  keys: readonly VerificationKey[];
  /** Of the last fetch that succeeded; -Infinity before it. */
  fetchedAtMs: number;
  /** Of the last fetch that began. */
  triedAtMs: number;
  fetching: Promise<void> | null;
}

interface KeySetsParts {
  readonly fetcher: Pick<Fetcher, 'fetch'>;
  readonly log: { warn(fields: object, message: string): void };
  /** Monotonic, in milliseconds. Default: `performance.now()`. */
  readonly clock?: () => number;
}

/**
 * The public keys of token issuers: those that are registered, or those that an address publishes.
 *
 * Guarantees: one fetch at a time for each issuer, and none within 30 s of the one before, whatever key ids tokens name and
 * whether it succeeded. A key that is no longer published is refused after ten minutes, or an hour if the address does not
 * answer. Keys that cannot be used are left out.
 */
export class KeySets {
  readonly #parts: KeySetsParts;
  readonly #clock: () => number;
  /** By issuer and revision. */
  readonly #registered = new LRUCache<string, readonly VerificationKey[]>({ max: MAX_SETS });
  /** By issuer and address. */
  readonly #fetched = new LRUCache<string, FetchedSet>({ max: MAX_SETS });

  constructor(parts: KeySetsParts) {
    this.#parts = parts;
    this.#clock = parts.clock ?? (() => performance.now());
  }

  /**
   * Without a promise if nothing needs to be fetched.
   *
   * @param kid a key that the caller looks for: the set is fetched again if it lacks it
   * @throws `Fault` `store_unavailable` if the keys cannot be known now
   */
  of(issuer: TokenIssuer, kid?: string): readonly VerificationKey[] | Promise<readonly VerificationKey[]> {
    const { id, changedRevision, jwksUrl, organizationId } = issuer;
    if (jwksUrl !== null) return this.#published(`${id} ${jwksUrl}`, jwksUrl, organizationId, kid);
    const name = `${id} ${changedRevision}`;
    return this.#registered.get(name) ?? this.#import(name, issuer.keys);
  }

  async #import(name: string, stored: readonly PublicKey[]): Promise<readonly VerificationKey[]> {
    const keys = await Promise.all(stored.map(verificationKeyOf));
    this.#registered.set(name, keys);
    return keys;
  }

  #published(
    name: string,
    url: string,
    group: string,
    kid: string | undefined,
  ): readonly VerificationKey[] | Promise<readonly VerificationKey[]> {
    const set = this.#fetched.get(name) ?? { keys: [], fetchedAtMs: -Infinity, triedAtMs: -Infinity, fetching: null };
    this.#fetched.set(name, set);
    const now = this.#clock();
    const isFresh = now - set.fetchedAtMs < FRESH_MS;
    const isMissing = kid !== undefined && !set.keys.some((key) => key.kid === kid || key.kid === undefined);
    if (isFresh && !isMissing) return set.keys;
    if (set.fetching === null && now - set.triedAtMs >= COOLDOWN_MS) set.fetching = this.#fetch(set, url, group);
    return set.fetching === null ? this.#usable(set) : set.fetching.then(() => this.#usable(set));
  }

  #usable(set: FetchedSet): readonly VerificationKey[] {
    if (this.#clock() - set.fetchedAtMs < MAX_AGE_MS) return set.keys;
    throw new Fault('store_unavailable', 'The keys of the token issuer cannot be fetched', { retryAfterSeconds: 30 });
  }

  /** Never rejects. */
  async #fetch(set: FetchedSet, url: string, group: string): Promise<void> {
    set.triedAtMs = this.#clock();
    try {
      const options = { maxBytes: MAX_BYTES, timeoutMs: TIMEOUT_MS, group, headers: { accept: 'application/json' } };
      const { status, body } = await this.#parts.fetcher.fetch(url, options);
      if (status !== 200) throw new UnusableKey(`the address answers with status ${status}`);
      const { keys } = keySet.parse(JSON.parse(Buffer.from(body).toString()));
      set.keys = await usableKeys(keys.slice(0, MAX_KEYS));
      set.fetchedAtMs = set.triedAtMs;
    } catch (error) {
      this.#parts.log.warn({ err: error, url }, 'the keys of a token issuer could not be fetched');
    } finally {
      set.fetching = null;
    }
  }
}

async function usableKeys(given: readonly unknown[]): Promise<readonly VerificationKey[]> {
  const keys = await Promise.all(
    given.map(async (one) => {
      try {
        return await verificationKeyOf(await publicKeyOf(one));
      } catch (error) {
        if (error instanceof UnusableKey) return null;
        throw error;
      }
    }),
  );
  return keys.filter((key) => key !== null);
}
