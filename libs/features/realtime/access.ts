import { unreachable } from '#libs/kernel/decider.ts';
import { Fault } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { notFound } from '#libs/platform/http/index.ts';
import type { Principal } from '#libs/platform/http/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

/** What a ticket stands for: a principal may subscribe to a channel as long as its key works. */
export interface Grant {
  readonly organizationId: EntityId;
  readonly channelId: EntityId;
  readonly principalType: 'user' | 'service';
  readonly principalId: EntityId;
  readonly keyId: EntityId;
  /** Those of the key when the ticket was issued. */
  readonly scopes: readonly string[];
  /** The principal is a user who is known to take part in the channel; its removal ends the subscription. */
  readonly takesPart: boolean;
  /** When the key expires, in milliseconds since the Unix epoch; null if it does not. */
  readonly expiresAtMs: number | null;
}

/** Port: the participants of channels. Throws `store_unavailable` faults. */
export interface ChannelUsers {
  /** The users that take part in a channel; null if the organization has no such channel. */
  usersOf(organizationId: EntityId, channelId: EntityId): Promise<ReadonlySet<EntityId> | null>;
}

/** What of a key matters to its subscriptions: when it expires. */
type KeyState = Pick<Principal, 'expiresAtMs'>;

/**
 * Port: API keys.
 *
 * Guarantees: a key and its user are decided on the log, as strictly as in the authentication of a request. Null if the
 * key is revoked or expired, or its user is deactivated. Throws `store_unavailable` when that cannot be decided.
 */
export interface KeyStates extends KeyChangeHandler {
  principal(keyId: EntityId): KeyState | null | Promise<KeyState | null>;
  /** @returns the age of the read that the answer is based on, too */
  verify(keyId: EntityId): Promise<{ readonly principal: KeyState; readonly ageMs: number } | null>;
}

type KeyChange =
  | { readonly kind: 'changed' | 'revoked'; readonly keyId: EntityId }
  | { readonly kind: 'user-deactivated'; readonly organizationId: EntityId; readonly userId: EntityId };

interface KeyChangeHandler {
  onChange(change: KeyChange): void;
  /** Some changes may have been missed. */
  onGap(): void;
}

/** Port: announcements of changes of keys, until the returned function is called. */
export interface KeyChangeFeed {
  subscribe(handler: KeyChangeHandler): () => void;
}

/** The grants that it concerns have lost access (`lost`), or may have (`doubtful`): then they must be checked. */
export interface AccessChange {
  readonly kind: 'lost' | 'doubtful';
  concerns(grant: Grant): boolean;
}

/** `lost` once the key has ended; `unknown` when that cannot be decided now. */
export type CheckedKey = { readonly expiresAtMs: number | null; readonly ageMs: number } | 'lost' | 'unknown';

/**
 * The grant of a principal, which may subscribe to what it may read: every channel of its organization.
 *
 * @throws HttpError 404 for a channel that the organization does not have
 */
export async function grantOf(
  { organizationId, principalType, principalId, keyId, scopes, expiresAtMs }: Principal,
  channelId: EntityId,
  channels: ChannelUsers,
): Promise<Grant> {
  const users = await channels.usersOf(organizationId, channelId);
  if (users === null) throw notFound();
  const takesPart = principalType === 'user' && users.has(principalId);
  return { organizationId, channelId, principalType, principalId, keyId, scopes: [...scopes], takesPart, expiresAtMs };
}

interface AccessParts {
  readonly keys: KeyStates;
  readonly changes: KeyChangeFeed;
  readonly channels: ChannelUsers;
  readonly log: Pick<Platform['log'], 'error'>;
}

/**
 * Decides which grants may open a connection, and which may keep it. Omits the time between two checks: the caller closes
 * what expires or cannot be verified.
 */
export class SubscriberAccess {
  readonly #parts: AccessParts;

  constructor(parts: AccessParts) {
    this.#parts = parts;
  }

  /**
   * @returns the grant with the present expiry of its key; null if the key has ended
   * @throws `Fault` `store_unavailable` when that cannot be decided
   */
  admit(grant: Grant): Grant | null | Promise<Grant | null> {
    const key = this.#parts.keys.principal(grant.keyId);
    return key instanceof Promise ? key.then((found) => withExpiryOf(found, grant)) : withExpiryOf(key, grant);
  }

  /** Never rejects. */
  async checkKey(keyId: EntityId): Promise<CheckedKey> {
    try {
      const found = await this.#parts.keys.verify(keyId);
      return found === null ? 'lost' : { expiresAtMs: found.principal.expiresAtMs, ageMs: found.ageMs };
    } catch (error) {
      if (!(error instanceof Fault)) this.#parts.log.error({ err: error, key: keyId }, 'a key could not be read');
      return 'unknown';
    }
  }

  /**
   * The users that take part in a channel; null if that is unknown: taking part does not decide about access to the data,
   * so this fails open. It may wait for a fold of the channel, so checks that end access must not wait for it.
   */
  async usersOf(organizationId: EntityId, channelId: EntityId): Promise<ReadonlySet<EntityId> | null> {
    try {
      return await this.#parts.channels.usersOf(organizationId, channelId);
    } catch (error) {
      if (error instanceof Fault) return null;
      throw error;
    }
  }

  /** Calls `handler` at once with changes that end access, or may, until the returned function is called. */
  onChange(handler: (change: AccessChange) => void): () => void {
    const { keys, changes } = this.#parts;
    return changes.subscribe({
      onChange: (change) => {
        // Before the handler, which may check the key.
        keys.onChange(change);
        handler(accessChange(change));
      },
      onGap: () => {
        keys.onGap();
        handler({ kind: 'doubtful', concerns: () => true });
      },
    });
  }
}

function withExpiryOf(key: KeyState | null, grant: Grant): Grant | null {
  return key && { ...grant, expiresAtMs: key.expiresAtMs };
}

function accessChange(change: KeyChange): AccessChange {
  switch (change.kind) {
    case 'revoked':
    case 'changed':
      return {
        kind: change.kind === 'revoked' ? 'lost' : 'doubtful',
        concerns: ({ keyId }) => keyId === change.keyId,
      };
    case 'user-deactivated':
      return {
        kind: 'lost',
        concerns: ({ organizationId, principalType, principalId }) =>
          principalType === 'user' && principalId === change.userId && organizationId === change.organizationId,
      };
    default:
      return unreachable(change);
  }
}
