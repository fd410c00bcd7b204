import { hash, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { crc32 } from 'node:zlib';
import { type ActingAs, type Caller, IMPERSONATE_SCOPE, mayActAs } from '#libs/kernel/acting.ts';
import type { Actor } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { forbidden } from './errors.ts';

/** A user or service of one organization, identified by its API key. */
export interface Principal extends Caller {
  readonly organizationId: EntityId;
  readonly keyId: EntityId;
  /** Expiry of the key in milliseconds since the Unix epoch; null if it does not expire. */
  readonly expiresAtMs: number | null;
}

/** Who the events of a principal's commands name. The `keyId` of a token ends with its user, which the actor names. */
export function actorOf({
  principalType: type,
  principalId: id,
  keyId,
}: Pick<Principal, 'principalType' | 'principalId' | 'keyId'>): Actor {
  return { type, id, keyId: keyId.endsWith(`.${id}`) ? keyId.slice(0, -id.length - 1) : keyId };
}

/**
 * Port: finds the principal of an API key.
 *
 * Guarantees: `null` for every key that is unknown, malformed, expired or revoked, without saying which. Returns
 * without a promise if no look-up is needed, so that a read costs no extra iteration of the event loop. Throws
 * `storeUnavailable` if the look-up fails.
 * Omissions: the form of the header, scopes, rate limits.
 */
export interface Authenticator {
  /** @param digest `digestOf` the key, for callers that know it */
  authenticate(presentedKey: string, digest?: string): Principal | null | Promise<Principal | null>;
  /** Whether the key was valid at its last look-up. Without a promise; absent where no key needs a look-up. */
  isKnown?(presentedKey: string): boolean;
}

/** Scopes of members, of which a token may name fewer. `upload`: files. */
export const MEMBER_SCOPES = ['read', 'write', 'upload'] as const;

const SCHEMES = ['bearer ', 'token '] as const;

/** The key in an `Authorization` header of the form `<key>`, `Bearer <key>` or `Token <key>`, or `null`. */
export function presentedKey(header: string | undefined): string | null {
  if (header === undefined) return null;
  const first = header.charCodeAt(0) | 0x20;
  if (first === 0x62 || first === 0x74) {
    const lower = header.slice(0, 7).toLowerCase();
    for (const scheme of SCHEMES) if (lower.startsWith(scheme)) return header.slice(scheme.length).trim() || null;
  }
  return header === '' || header.includes(' ') ? null : header;
}

interface PresentedKey {
  readonly key: string;
  readonly digest: string;
}

/** By connection, the last header. */
const presented = new WeakMap<object, { readonly header: string; readonly found: PresentedKey | null }>();

/**
 * The key of a request with its digest, or `null`. Both follow from the header alone, so that a connection with many
 * requests hashes its key once; whether the key works is decided for each request.
 */
export function keyOf({ socket, headers: { authorization: header } }: IncomingMessage): PresentedKey | null {
  if (header === undefined) return null;
  const last = presented.get(socket);
  if (last?.header === header) return last.found;
  const key = presentedKey(header);
  const found = key === null ? null : { key, digest: digestOf(key) };
  presented.set(socket, { header, found });
  return found;
}

/** @throws HttpError 403 if the principal lacks the scope */
export function requireScope(principal: Principal, required: string): void {
  if (!principal.scopes.has(required))
    throw forbidden(`The API key or token lacks the scope ${required}`, 'missing_scope');
}

/** @throws HttpError 403 */
export function requireMayActAs(caller: Caller, name: ActingAs): void {
  if (!mayActAs(caller, name)) throw mayNotActAs();
}

export function mayNotActAs(): Error {
  return forbidden(
    `The API key lacks the scope ${IMPERSONATE_SCOPE}: a user's key acts as that user only, a service's key as agents and for people without an account`,
    'missing_scope',
  );
}

/**
 * An API key is `parley_live_`, 32 random bytes in base62 (43 characters), and the CRC-32 of all that in base62
 * (6 characters). The checksum saves the look-up of mistyped and random keys; it proves nothing. Only the SHA-256 of
 * a key is ever stored.
 */

export const API_KEY_PREFIX = 'parley_live_';
const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const KEY_LENGTH = API_KEY_PREFIX.length + SECRET_LENGTH + CHECKSUM_LENGTH;
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const FORM = new RegExp(`^${API_KEY_PREFIX}[0-9A-Za-z]{${SECRET_LENGTH + CHECKSUM_LENGTH}}$`);

/** @param random 32 bytes; only tests pass them */
export function createApiKey(random: Uint8Array = randomBytes(32)): string {
  const body = API_KEY_PREFIX + base62(BigInt(`0x${Buffer.from(random).toString('hex')}`), SECRET_LENGTH);
  return body + checksumOf(body);
}

/** Whether form and checksum of a key are correct. */
export function isWellFormedApiKey(key: string): boolean {
  if (key.length !== KEY_LENGTH || !FORM.test(key)) return false;
  const body = key.slice(0, -CHECKSUM_LENGTH);
  return key.slice(-CHECKSUM_LENGTH) === checksumOf(body);
}

/** SHA-256 of a key in hex (64 characters), under which it is stored. */
export function digestOf(key: string): string {
  return hash('sha256', key, 'hex');
}

function checksumOf(body: string): string {
  return base62(BigInt(crc32(body)), CHECKSUM_LENGTH);
}

/** Fixed width, most significant digit first. */
function base62(value: bigint, width: number): string {
  let digits = '';
  for (let rest = value; digits.length < width; rest /= 62n) digits = ALPHABET.charAt(Number(rest % 62n)) + digits;
  return digits;
}
