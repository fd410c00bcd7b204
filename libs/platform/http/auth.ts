import type { EntityId } from '#libs/kernel/ids.ts';
import { forbidden } from './errors.ts';

/** Who calls: a user or service of exactly one organization, through one API key. */
export interface Principal {
  readonly organizationId: EntityId;
  readonly principalType: 'user' | 'service';
  readonly principalId: EntityId;
  readonly keyId: EntityId;
  /** `read`, `write`, `impersonate`, `admin`, `platform`; none includes another one. */
  readonly scopes: ReadonlySet<string>;
  /** When the key stops working: milliseconds since the Unix epoch, or null if it does not expire. */
  readonly expiresAtMs: number | null;
}

/**
 * Port: who presents this key.
 *
 * Guarantees: `null` for every key that is unknown, malformed, expired or revoked, without saying
 * which. Answers at once (no promise) when it knows, so that a read costs no extra turn of the
 * event loop. Throws `storeUnavailable` when it cannot know.
 * Omits: the header's form, scopes, rate limits.
 */
export interface Authenticator {
  authenticate(presentedKey: string): Principal | null | Promise<Principal | null>;
}

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

/** @throws HttpError 403 when the principal lacks the scope */
export function requireScope(principal: Principal, required: string): void {
  if (!principal.scopes.has(required)) throw forbidden(`The API key lacks the scope ${required}`, 'missing_scope');
}
