import type { KeyAuthenticator } from '#libs/features/keys/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { Authenticator, Principal } from '#libs/platform/http/index.ts';

import type { TokenAuthenticator } from './token-authenticator.ts';

interface Verified {
  readonly principal: Principal;
  readonly ageMs: number;
}

/** Authenticates callers by an API key or a token. No API key contains a dot, and every token does. */
export class CallerAuthenticator implements Authenticator {
  readonly #keys: KeyAuthenticator;
  readonly #tokens: TokenAuthenticator;

  constructor(keys: KeyAuthenticator, tokens: TokenAuthenticator) {
    this.#keys = keys;
    this.#tokens = tokens;
  }

  /** See the port. */
  authenticate(presented: string, digest?: string): Principal | null | Promise<Principal | null> {
    return this.#of(presented).authenticate(presented, digest);
  }

  /** See the port. */
  isKnown(presented: string): boolean {
    return this.#of(presented).isKnown(presented);
  }

  /** As `authenticate`, for a caller that presented its key or token earlier, for example with a ticket. */
  principal(keyId: EntityId): Principal | null | Promise<Principal | null> {
    if (!isOfToken(keyId)) return this.#keys.principal(keyId);
    return this.#tokens.verify(keyId).then((found) => found?.principal ?? null);
  }

  /** As `principal`, with the age of the read behind it in milliseconds. */
  verify(keyId: EntityId): Promise<Verified | null> {
    return isOfToken(keyId) ? this.#tokens.verify(keyId) : this.#keys.verify(keyId);
  }

  #of(presented: string): KeyAuthenticator | TokenAuthenticator {
    return isOfToken(presented) ? this.#tokens : this.#keys;
  }
}

function isOfToken(value: string): boolean {
  return value.includes('.');
}
