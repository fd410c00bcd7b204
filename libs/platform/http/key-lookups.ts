import { LRUCache } from 'lru-cache';
import { Fault } from '#libs/kernel/faults.ts';
import { FairSemaphore, QueueFull } from '../lifecycle/index.ts';
import { digestOf } from './auth.ts';
import type { Authenticator, Principal } from './auth.ts';
import { tooManyRequests } from './errors.ts';
import { Windows } from './rate-limits.ts';
import type { RateLimit } from './server-options.ts';

const LOOKUPS_AT_ONCE = 16;
const MAX_WAITING = 2_048;
const MAX_WAITING_PER_ADDRESS = 512;
/** With the look-up itself, which takes at most 4 s, a request is answered within 5 s. */
const MAX_WAIT_MS = 1_000;
/** Keys that were found not to work, by address. */
const UNKNOWN_PER_ADDRESS: RateLimit = { max: 600, windowMs: 60_000 };
const MAX_KNOWN = 10_000;

type Identity = Principal | null | Promise<Principal | null>;

/**
 * Authentication with a bound on what unknown keys cost: each of them is a read of the event store, and anybody can
 * make up as many well-formed keys as they like.
 *
 * Guarantees: a bounded number of look-ups at once, for which addresses take turns; none for an address whose keys
 * failed too often within a minute (429). A key that has worked here before never waits behind unknown ones, and is
 * never refused for what others do from the same address. Answers that need no look-up come without a promise.
 */
export class KeyLookups {
  readonly #authenticator: Authenticator;
  readonly #turns = new FairSemaphore({
    permits: LOOKUPS_AT_ONCE,
    maxWaiting: MAX_WAITING,
    maxWaitingInGroup: MAX_WAITING_PER_ADDRESS,
  });
  readonly #failures: Windows | null;
  /** Digests of keys that worked when they were last looked up. */
  readonly #known = new LRUCache<string, true>({ max: MAX_KNOWN });
  /** Look-ups that run or wait, by digest: requests with the same key share one. */
  readonly #pending = new Map<string, Promise<Principal | null>>();

  /** @param options.limitAddresses off where many callers share an address, such as that of a proxy */
  constructor(authenticator: Authenticator, { limitAddresses }: { readonly limitAddresses: boolean }) {
    this.#authenticator = authenticator;
    this.#failures = limitAddresses ? new Windows(UNKNOWN_PER_ADDRESS) : null;
  }

  /** @throws HttpError 429 for a key that would have to be looked up, where the address has used up its share */
  authenticate(key: string, address: string): Identity {
    const seconds = this.#failures?.remaining(address) ?? 0;
    if (seconds === 0 && this.#turns.isFree) {
      const identity = this.#authenticator.authenticate(key);
      return identity instanceof Promise ? this.#lookUp(digestOf(key), address, () => identity) : identity;
    }
    const digest = digestOf(key);
    if (this.#known.has(digest)) {
      const identity = this.#authenticator.authenticate(key);
      return identity instanceof Promise ? this.#noted(identity, digest, address) : identity;
    }
    const pending = this.#pending.get(digest);
    if (pending !== undefined) return pending;
    if (seconds > 0) throw tooManyRequests(seconds);
    return this.#lookUp(digest, address, async () => this.#authenticator.authenticate(key));
  }

  #lookUp(digest: string, address: string, read: () => Promise<Principal | null>): Promise<Principal | null> {
    const result = this.#inTurn(address, () => this.#noted(read(), digest, address)).finally(() => {
      if (this.#pending.get(digest) === result) this.#pending.delete(digest);
    });
    this.#pending.set(digest, result);
    return result;
  }

  async #inTurn<T>(address: string, work: () => Promise<T>): Promise<T> {
    const signal = this.#turns.isFree ? undefined : AbortSignal.timeout(MAX_WAIT_MS);
    try {
      return await this.#turns.run(
        () => {
          const seconds = this.#failures?.remaining(address) ?? 0;
          if (seconds > 0) throw tooManyRequests(seconds);
          return work();
        },
        { group: address, ...(signal && { signal }) },
      );
    } catch (error) {
      if (error instanceof QueueFull && error.scope === 'group') throw tooManyRequests(1);
      if (error instanceof QueueFull || error === signal?.reason) {
        throw new Fault('overloaded', 'Too many unknown keys are being looked up', {
          cause: error,
          retryAfterSeconds: 1,
        });
      }
      throw error;
    }
  }

  async #noted(found: Promise<Principal | null>, digest: string, address: string): Promise<Principal | null> {
    const principal = await found;
    if (principal !== null) this.#known.set(digest, true);
    else {
      this.#known.delete(digest);
      this.#failures?.take(address);
    }
    return principal;
  }
}
