import type { IncomingMessage } from 'node:http';

import { FairSemaphore } from '../lifecycle/index.ts';
import { digestOf, type Authenticator, type Principal } from './auth.ts';
import { tooManyRequests } from './errors.ts';
import { withPermit, Windows } from './rate-limits.ts';
import type { RateLimit } from './server-options.ts';

const LOOKUPS_AT_ONCE = 16;
const MAX_WAITING = 2_048;
const MAX_WAITING_PER_ADDRESS = 512;
/** A look-up takes at most 4 s, so a request is answered within 5 s. */
const MAX_WAIT_MS = 1_000;
/** Keys per address that were looked up and refused. */
const UNKNOWN_PER_ADDRESS: RateLimit = { max: 600, windowMs: 60_000 };

/** Upgrade requests, with the bounds of the server that received them. */
const upgrades = new WeakMap<IncomingMessage, (key: string) => Principal | null | Promise<Principal | null>>();

/**
 * Authenticates by a key in an upgrade request, within the bounds of the request's address.
 *
 * @throws HttpError 429 as `KeyLookups`
 */
export async function authenticateUpgrade(request: IncomingMessage, key: string): Promise<Principal | null> {
  const authenticate = upgrades.get(request);
  if (authenticate === undefined) throw new TypeError('the upgrade request did not come from an HTTP server');
  return authenticate(key);
}

/**
 * Authentication that bounds the cost of unknown keys: each of them is a read of the event store, and an attacker can
 * make up any number of well-formed keys.
 *
 * Guarantees: a bounded number of concurrent look-ups, for which addresses take turns; none for an address with too
 * many refused keys within a minute (429). A key that the authenticator knows never waits behind unknown keys, and is
 * never refused because of other keys of the same address. Returns without a promise if no look-up is needed.
 */
export class KeyLookups {
  readonly #authenticator: Authenticator;
  readonly #permits = new FairSemaphore({
    permits: LOOKUPS_AT_ONCE,
    maxWaiting: MAX_WAITING,
    maxWaitingInGroup: MAX_WAITING_PER_ADDRESS,
  });
  readonly #failures: Windows | null;
  /** Running and queued look-ups by digest: requests with the same key share one. */
  readonly #pending = new Map<string, Promise<Principal | null>>();

  /** @param options.limitAddresses false if many callers share an address, such as that of a proxy */
  constructor(authenticator: Authenticator, { limitAddresses }: { readonly limitAddresses: boolean }) {
    this.#authenticator = authenticator;
    this.#failures = limitAddresses ? new Windows(UNKNOWN_PER_ADDRESS) : null;
  }

  /** @throws HttpError 429 for a key that needs a look-up, if the address has too many refused keys */
  authenticate(key: string, address: string, digest = digestOf(key)): Principal | null | Promise<Principal | null> {
    const seconds = this.#failures?.remaining(address) ?? 0;
    if (seconds === 0 && this.#permits.isFree) {
      const identity = this.#authenticator.authenticate(key, digest);
      return identity instanceof Promise ? this.#lookUp(digest, address, () => identity) : identity;
    }
    if (this.#authenticator.isKnown?.(key) === true) {
      const identity = this.#authenticator.authenticate(key, digest);
      return identity instanceof Promise ? this.#counted(identity, address) : identity;
    }
    const pending = this.#pending.get(digest);
    if (pending !== undefined) return pending;
    if (seconds > 0) throw tooManyRequests(seconds);
    return this.#lookUp(digest, address, async () => this.#authenticator.authenticate(key, digest));
  }

  /** Lets `authenticateUpgrade` authenticate the request. */
  serveUpgrade(request: IncomingMessage, address: string): void {
    upgrades.set(request, (key) => this.authenticate(key, address));
  }

  #lookUp(digest: string, address: string, read: () => Promise<Principal | null>): Promise<Principal | null> {
    const queued = {
      group: address,
      signal: this.#permits.isFree ? undefined : AbortSignal.timeout(MAX_WAIT_MS),
      detail: 'Too many unknown keys are being looked up',
      retryAfterSeconds: 1,
    };
    const result = withPermit(this.#permits, queued, async () => {
      const seconds = this.#failures?.remaining(address) ?? 0;
      if (seconds > 0) throw tooManyRequests(seconds);
      return this.#counted(read(), address);
    }).finally(() => {
      if (this.#pending.get(digest) === result) this.#pending.delete(digest);
    });
    this.#pending.set(digest, result);
    return result;
  }

  async #counted(found: Promise<Principal | null>, address: string): Promise<Principal | null> {
    const principal = await found;
    if (principal === null) this.#failures?.take(address);
    return principal;
  }
}
