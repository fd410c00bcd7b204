import type { User } from '#libs/features/users/index.ts';
import type { Principal } from '#libs/platform/http/index.ts';

import { isSameDigest } from './key-form.ts';
import { endOf } from './key.decider.ts';
import type { Key, KeyState } from './key.decider.ts';

/** A key that is neither revoked nor somebody's who was deactivated. Whether it has expired, the clock says. */
export interface KnownKey {
  readonly digest: string;
  readonly principal: Principal;
  /** Milliseconds since the Unix epoch, or null if it does not expire. */
  readonly expiresAtMs: number | null;
}

/** A key and, if it is a user's, that user; as one of the stores has them. */
export interface FoundKey {
  readonly key: KeyState;
  readonly user: User | null;
}

/** @returns null for a key that does not work, whatever the reason */
export function knownKey({ key, user }: FoundKey, digest: string): KnownKey | null {
  if (key === null || key === 'withdrawn' || key.revokedAt !== null) return null;
  if (!isSameDigest(key.digest, digest)) return null;
  if (key.principal.type === 'user' && !mayAct(user, key)) return null;
  const end = endOf(key);
  const expiresAtMs = end === null ? null : Date.parse(end);
  return {
    digest,
    expiresAtMs,
    principal: {
      organizationId: key.organizationId,
      principalType: key.principal.type,
      principalId: key.principal.id,
      keyId: key.id,
      scopes: new Set(key.scopes),
      expiresAtMs,
    },
  };
}

/** @param nowMs milliseconds since the Unix epoch */
export function isWorking({ key, user }: FoundKey, nowMs: number): boolean {
  if (key === null || key === 'withdrawn') return false;
  const known = knownKey({ key, user }, key.digest);
  return known !== null && (known.expiresAtMs === null || known.expiresAtMs > nowMs);
}

function mayAct(user: User | null, key: Key): boolean {
  return user !== null && user.organizationId === key.organizationId && user.deactivatedAt === null;
}
