import type { EntityId } from '#libs/kernel/ids.ts';

/** The permission to follow a stream: its principal may do so as long as its key works. */
export interface Grant {
  /** That of the principal. */
  readonly organizationId: EntityId;
  /** The channel that is followed, or in which a member was admitted; null for other streams. */
  readonly channelId: EntityId | null;
  readonly principalType: 'user' | 'service' | 'system';
  readonly principalId: EntityId;
  readonly keyId: EntityId;
  readonly scopes: readonly string[];
  readonly isMember: boolean;
  /** The principal is a user that takes part in the channel; its removal ends the subscription. */
  readonly takesPart: boolean;
  /** Unix milliseconds; null if the key does not expire. */
  readonly expiresAtMs: number | null;
}

export interface ChannelGrant extends Grant {
  readonly channelId: EntityId;
}

/** The grants that a change concerns have lost access (`lost`), or must be checked (`doubtful`). */
export interface AccessChange {
  readonly kind: 'lost' | 'doubtful';
  concerns(grant: Grant): boolean;
}

/** `lost` if the key has ended, or a member no longer takes part; `unknown` if that cannot be decided now. */
export type CheckedKey = { readonly expiresAtMs: number | null; readonly ageMs: number } | 'lost' | 'unknown';

/** Port: decides whether subscribers keep their access. */
export interface LiveAccess {
  /** Whether the key still works, and of a member also whether it still takes part in the channel. Never rejects. */
  check(grant: Grant): Promise<CheckedKey>;
  /** The users that take part in a channel; null if that is unknown, which ends no subscription. */
  usersOf(organizationId: EntityId, channelId: EntityId): Promise<ReadonlySet<EntityId> | null>;
  /** Calls `handler` immediately with changes that end access, or may, until the returned function is called. */
  onChange(handler: (change: AccessChange) => void): () => void;
}

/** The end of a grant: that of its key is never put off, and the end of a token is in its grant alone. */
export function earliest(one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other;
  return Math.min(one, other);
}
