import type { EntityId } from '#libs/kernel/ids.ts';

import type { Principal } from './auth.ts';
import { forbidden } from './errors.ts';

/** The scope of keys that may act under any name of their organization. */
const IMPERSONATE_SCOPE = 'impersonate';

/** A caller, as far as the right to act under a name depends on it. */
export type Caller = Pick<Principal, 'principalType' | 'principalId' | 'scopes'>;

/**
 * The name under which a caller acts: a user of the organization, an agent or a person without an account
 * (`unauthenticated`: nothing but the caller vouches for it), or the system.
 */
export type ActingAs =
  { readonly type: 'user'; readonly id: EntityId } | { readonly type: 'unauthenticated' } | { readonly type: 'system' };

export const UNAUTHENTICATED: ActingAs = { type: 'unauthenticated' };

/**
 * Whether the caller's key lets it act under a name. Without the scope `impersonate`, a user's key acts as that user,
 * and a service's key as agents and for people without an account, which have no keys of their own.
 */
export function mayActAs({ principalType, principalId, scopes }: Caller, name: ActingAs): boolean {
  if (scopes.has(IMPERSONATE_SCOPE)) return true;
  if (principalType === 'service') return name.type === 'unauthenticated';
  return name.type === 'user' && name.id === principalId;
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
