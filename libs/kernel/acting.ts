import type { EntityId } from './ids.ts';

/** Scope of keys that may act as any user of their organization. */
export const IMPERSONATE_SCOPE = 'impersonate';

/** The part of a principal on which the right to act as another identity depends. */
export interface Caller {
  /** `system`: the operator, through the command line. No API key has it. */
  readonly principalType: 'user' | 'service' | 'system';
  readonly principalId: EntityId;
  /** `read`, `write`, `impersonate`, `agent`, `admin`, `platform`; no scope includes another. */
  readonly scopes: ReadonlySet<string>;
  /** Sees and does only what belongs to the channels in which its user takes part. Other callers see the organization. */
  readonly isMember: boolean;
}

/**
 * The identity that a caller acts as: a user of the organization, an agent or a person without an account
 * (`unauthenticated`: only the caller vouches for it), or the system.
 */
export type ActingAs =
  { readonly type: 'user'; readonly id: EntityId } | { readonly type: 'unauthenticated' } | { readonly type: 'system' };

export const UNAUTHENTICATED: ActingAs = { type: 'unauthenticated' };

/**
 * Whether a caller may act as an identity. Without the scope `impersonate`, a user's key acts as that user, and a
 * service's key as agents and for people without an account, which have no keys of their own.
 */
export function mayActAs({ principalType, principalId, scopes }: Caller, name: ActingAs): boolean {
  if (scopes.has(IMPERSONATE_SCOPE)) return true;
  if (principalType === 'service') return name.type === 'unauthenticated';
  return name.type === 'user' && name.id === principalId;
}
