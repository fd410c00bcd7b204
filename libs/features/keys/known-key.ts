import type { User } from '#libs/features/users/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { Principal } from '#libs/platform/http/index.ts';

import { endOf } from './key.decider.ts';
import type { KeyState } from './key.decider.ts';

/** A key that is not revoked and whose user, if it is a user's, is active. Whether it has expired, the clock says. */
export interface KnownKey {
  readonly digest: string;
  readonly principal: Principal;
}

/**
 * @param user of a key whose principal is a user
 * @returns null for a key that does not work, whatever the reason
 */
export function knownKey(key: KeyState, user: User | null): KnownKey | null {
  if (key === null || key === 'withdrawn' || key.revokedAt !== null) return null;
  if (key.principal.type === 'user' && !isActiveUser(user, key.organizationId)) return null;
  const end = endOf(key);
  return {
    digest: key.digest,
    principal: {
      organizationId: key.organizationId,
      principalType: key.principal.type,
      principalId: key.principal.id,
      keyId: key.id,
      scopes: new Set(key.scopes),
      expiresAtMs: end === null ? null : Date.parse(end),
    },
  };
}

/** Whether the user belongs to the organization and was not deactivated: only then do its keys work. */
export function isActiveUser(user: User | null, organizationId: EntityId): boolean {
  return user !== null && user.organizationId === organizationId && user.deactivatedAt === null;
}
