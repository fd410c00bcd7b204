import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose';
import { z } from 'zod';

import { isActiveUser, type User, userEntity, userIdOf, type Users } from '#libs/features/users/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { recentlyUsed } from '#libs/platform/caches/index.ts';
import { type Authenticator, digestOf, MEMBER_SCOPES, type Principal } from '#libs/platform/http/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { foldStream } from '#libs/platform/streams/index.ts';
import { type Announcements, FreshReads } from '#libs/platform/announcements/index.ts';

import type { KeySets } from './key-sets.ts';
import type { Algorithm, VerificationKey } from './public-keys.ts';
import { tokenIssuerEntity, type TokenIssuers } from './token-issuer.read.ts';
import type { TokenIssuer } from './token-issuer.ts';

const MAX_TOKEN_CHARACTERS = 8 * 1024;
const MAX_TOKENS = 10_000;
const MAX_USERS = 20_000;
const MAX_ISSUERS = 2_000;
const MAX_LIFETIME_SECONDS = 24 * 60 * 60;
const SKEW_SECONDS = 60;
/** Waiting for a read of the log, of the issuer and then of the user, fits in the 5 s that a request may take. */
const READ = { deadlineMs: 2_000 };

/** By the `alg` of a header. */
const ALGORITHMS: Readonly<Record<string, Algorithm>> = {
  EdDSA: 'EdDSA',
  Ed25519: 'EdDSA',
  ES256: 'ES256',
  RS256: 'RS256',
};

const claims = z.object({
  sub: z.string().min(1).max(255),
  iat: z.number(),
  exp: z.number(),
  /** Absent: all that members may do. One that is not known refuses the token, because it may be meant as a limit. */
  parley_scopes: z.array(z.enum(MEMBER_SCOPES)).optional(),
  name: z.unknown().optional(),
  email: z.unknown().optional(),
  picture: z.unknown().optional(),
});
type Claims = z.infer<typeof claims>;

/** The holder of a token, which is valid until it expires as long as the issuer has the key and the user is active. */
interface Holder {
  readonly issuerId: EntityId;
  /** Of the key that signed it. */
  readonly thumbprint: string;
  readonly userId: EntityId;
}

interface VerifiedToken extends Holder {
  /** One object for all requests. */
  readonly principal: Principal & { readonly expiresAtMs: number };
}

interface TokenAuthenticatorParts {
  readonly store: Platform['store'];
  readonly issuers: Pick<TokenIssuers, 'named'>;
  readonly users: Pick<Users, 'createOfIssuer'>;
  readonly keySets: KeySets;
  readonly announcements: Pick<Announcements, 'areReceivedSince' | 'listen'>;
  /** Milliseconds since the Unix epoch. Default: `Date.now()`. */
  readonly now?: () => number;
}

/**
 * Authenticates members by the tokens that parties of their organization have signed.
 *
 * Guarantees: issuers and users are read from the log, and kept by the rules of `FreshReads`; the read model only finds
 * candidates by the name of the issuer. A key verifies its own algorithm only, and is one that the issuer registered or
 * publishes, never one that the token names. A signature is verified once for each token.
 */
export class TokenAuthenticator implements Authenticator {
  readonly #parts: TokenAuthenticatorParts;
  readonly #now: () => number;
  readonly #issuers: FreshReads<TokenIssuer>;
  readonly #users: FreshReads<User>;
  /** By digest. */
  readonly #verified = recentlyUsed<string, VerifiedToken>(MAX_TOKENS);

  constructor(parts: TokenAuthenticatorParts) {
    this.#parts = parts;
    this.#now = parts.now ?? Date.now;
    const { store, announcements } = parts;
    this.#issuers = new FreshReads<TokenIssuer>({
      async read(id) {
        const issuer = await foldStream(store, tokenIssuerEntity.projection, id, READ);
        return issuer?.deletedAt === null ? issuer : null;
      },
      announcements,
      onChange(change, reads) {
        if (change.kind === 'issuer-changed') reads.invalidate(change.issuerId);
      },
      max: MAX_ISSUERS,
    });
    this.#users = new FreshReads<User>({
      async read(id) {
        const user = await foldStream(store, userEntity.projection, id, READ);
        return user?.deactivatedAt === null ? user : null;
      },
      announcements,
      onChange(change, reads) {
        if (change.kind === 'user-deactivated') reads.invalidate(change.userId);
      },
      max: MAX_USERS,
    });
  }

  /** See the port. */
  authenticate(presented: string, digest = digestOf(presented)): Principal | null | Promise<Principal | null> {
    const known = this.#verified.get(digest);
    if (known === undefined) return this.#verify(presented, digest);
    const { principal } = known;
    if (principal.expiresAtMs <= this.#now()) return null;
    const isValid = this.#isValid(known, principal.organizationId);
    if (isValid instanceof Promise) return isValid.then((valid) => (valid ? principal : null));
    return isValid ? principal : null;
  }

  /** See the port. */
  isKnown(presented: string): boolean {
    return this.#verified.has(digestOf(presented));
  }

  /**
   * The holder of a token that was presented earlier, by the `keyId` of its principal, with the age of the reads behind the
   * answer. Omits the expiry and the scopes of the token, which the caller has.
   */
  async verify(keyId: string): Promise<{ readonly principal: Principal; readonly ageMs: number } | null> {
    const [issuerId = '', thumbprint = '', userId = ''] = keyId.split('.');
    const [issuer, user] = await Promise.all([
      this.#issuers.current(issuerId) ?? this.#issuers.read(issuerId),
      this.#users.current(userId) ?? this.#users.read(userId),
    ]);
    if (issuer === null || user === null || !isActiveUser(user.value, issuer.value.organizationId)) return null;
    if (!holds(await this.#parts.keySets.of(issuer.value), thumbprint)) return null;
    const principal = principalOf(issuer.value, { issuerId, thumbprint, userId }, MEMBER_SCOPES, null);
    return { principal, ageMs: Math.max(this.#issuers.age(issuer), this.#users.age(user)) };
  }

  /** Whether the issuer still has the key, and the user is active. Without a promise if both were read recently. */
  #isValid(holder: Holder, organizationId: EntityId): boolean | Promise<boolean> {
    const issuer = this.#issuers.current(holder.issuerId);
    const user = this.#users.current(holder.userId);
    if (issuer === undefined || user === undefined) {
      return this.verify(keyIdOf(holder)).then((found) => found !== null);
    }
    if (!isActiveUser(user.value, organizationId)) return false;
    const keys = this.#parts.keySets.of(issuer.value);
    return keys instanceof Promise ? keys.then((all) => holds(all, holder.thumbprint)) : holds(keys, holder.thumbprint);
  }

  /** @returns null for every token that is not valid, without saying why */
  async #verify(token: string, digest: string): Promise<Principal | null> {
    // 1. What the token says of itself decides nothing but where to look.
    const said = token.length <= MAX_TOKEN_CHARACTERS ? decoded(token) : null;
    if (said === null) return null;
    // 2. Several organizations may have registered the issuer: the one whose key verifies the token is meant.
    const ids = await this.#parts.issuers.named(said.issuer);
    const tries = await Promise.allSettled(ids.map((id) => this.#verifyBy(id, token, said)));
    const verified = tries.find((one) => one.status === 'fulfilled' && one.value !== null);
    if (verified?.status !== 'fulfilled' || verified.value === null) {
      const failed = tries.find((one) => one.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
      return null;
    }
    // 3. Its user.
    const known = await this.#holderOf(verified.value);
    if (known === null || known.principal.expiresAtMs <= this.#now()) return null;
    this.#verified.set(digest, known);
    return known.principal;
  }

  async #verifyBy(
    issuerId: EntityId,
    token: string,
    { algorithm, kid, issuer: name }: TokenClaims,
  ): Promise<Signed | null> {
    const issuer = (this.#issuers.current(issuerId) ?? (await this.#issuers.read(issuerId)))?.value;
    if (issuer === undefined || issuer.issuer !== name) return null;
    for (const key of await this.#parts.keySets.of(issuer, kid)) {
      if (key.algorithm !== algorithm || (kid !== undefined && key.kid !== undefined && key.kid !== kid)) continue;
      const payload = await payloadOf(token, key, issuer, this.#now());
      if (payload !== null) return { issuer, key, payload };
    }
    return null;
  }

  async #holderOf({ issuer, key, payload }: Signed): Promise<VerifiedToken | null> {
    const parsed = claims.safeParse(payload);
    if (!parsed.success) return null;
    const { sub, iat, exp, parley_scopes: scopes = MEMBER_SCOPES } = parsed.data;
    if (exp - iat > MAX_LIFETIME_SECONDS) return null;
    const { organizationId } = issuer;
    const userId = userIdOf({ organizationId, issuer: issuer.issuer, subject: sub });
    let user = (this.#users.current(userId) ?? (await this.#users.read(userId)))?.value;
    if (user === undefined && issuer.createsUsers) {
      await this.#parts.users.createOfIssuer({ organizationId, issuer, subject: sub, ...profileOf(parsed.data) });
      this.#users.invalidate(userId);
      user = (await this.#users.read(userId))?.value;
    }
    if (user === undefined || !isActiveUser(user, organizationId)) return null;
    const holder = { issuerId: issuer.id, thumbprint: key.thumbprint, userId };
    const expiresAtMs = (exp + SKEW_SECONDS) * 1_000;
    return { ...holder, principal: principalOf(issuer, holder, scopes, expiresAtMs) };
  }
}

/** The issuer and key that a token names, before its signature is verified. */
interface TokenClaims {
  readonly issuer: string;
  readonly algorithm: Algorithm;
  readonly kid: string | undefined;
}

interface Signed {
  readonly issuer: TokenIssuer;
  readonly key: VerificationKey;
  readonly payload: JWTPayload;
}

function decoded(token: string): TokenClaims | null {
  try {
    const { alg = '', kid } = decodeProtectedHeader(token);
    const { iss } = decodeJwt(token);
    const algorithm = Object.hasOwn(ALGORITHMS, alg) ? ALGORITHMS[alg] : undefined;
    if (typeof iss !== 'string' || algorithm === undefined) return null;
    if (kid !== undefined && typeof kid !== 'string') return null;
    return { issuer: iss, algorithm, kid };
  } catch {
    return null;
  }
}

/** Null for a token that another key signed, or that is not for Parley, or not now. */
async function payloadOf(
  token: string,
  { key, algorithm }: VerificationKey,
  { issuer, audience }: TokenIssuer,
  nowMs: number,
): Promise<JWTPayload | null> {
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: algorithm === 'EdDSA' ? ['EdDSA', 'Ed25519'] : [algorithm],
      issuer,
      audience,
      clockTolerance: SKEW_SECONDS,
      requiredClaims: ['sub', 'iat', 'exp'],
      // Refuses a token that was issued in the future.
      maxTokenAge: MAX_LIFETIME_SECONDS,
      currentDate: new Date(nowMs),
    });
    return payload;
  } catch (error) {
    // A key or a token in a form that the library does not expect is a TypeError.
    if (error instanceof errors.JOSEError || error instanceof TypeError) return null;
    throw error;
  }
}

function principalOf<Expiry extends number | null>(
  { organizationId }: TokenIssuer,
  holder: Holder,
  scopes: readonly string[],
  expiresAtMs: Expiry,
) {
  return {
    organizationId,
    principalType: 'user' as const,
    principalId: holder.userId,
    keyId: keyIdOf(holder),
    scopes: new Set(scopes),
    isMember: true,
    expiresAtMs,
  };
}

function keyIdOf({ issuerId, thumbprint, userId }: Holder): string {
  return `${issuerId}.${thumbprint}.${userId}`;
}

function holds(keys: readonly VerificationKey[], thumbprint: string): boolean {
  return keys.some((key) => key.thumbprint === thumbprint);
}

/** The details of a new user. */
function profileOf({ name, email, picture }: Claims) {
  return {
    displayName: typeof name === 'string' && name.length <= 256 ? name : '',
    email: typeof email === 'string' && /^[^\s@]{1,64}@[^\s@]{1,255}$/.test(email) ? email : null,
    imageUrl: typeof picture === 'string' && /^https?:\/\/\S{1,2000}$/.test(picture) ? picture : null,
  };
}
