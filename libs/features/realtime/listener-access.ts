import type { KeyAuthenticator, KeyChange, KeyChanges } from '#libs/features/keys/index.ts';
import { unreachable } from '#libs/kernel/decider.ts';
import { Fault } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { notFound } from '#libs/platform/http/index.ts';
import type { Principal } from '#libs/platform/http/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import type { AccessChange, CheckedKey, Grant, ListenerAccess } from './realtime.ports.ts';

/** Port: what is asked of channels before somebody may listen to one. Throws `store_unavailable` faults. */
export interface ListenedChannels {
  /** The users that take part in a channel; null if the organization has no such channel. */
  usersOf(organizationId: EntityId, channelId: EntityId): Promise<ReadonlySet<EntityId> | null>;
}

/**
 * What a principal may listen to with its key: what it may read, that is every channel of its organization.
 *
 * @throws HttpError 404 for a channel that the organization does not have
 */
export async function listenerGrant(
  { organizationId, principalType, principalId, keyId, scopes, expiresAtMs }: Principal,
  channelId: EntityId,
  channels: ListenedChannels,
): Promise<Grant> {
  const users = await channels.usersOf(organizationId, channelId);
  if (users === null) throw notFound();
  const takesPart = principalType === 'user' && users.has(principalId);
  return { organizationId, channelId, principalType, principalId, keyId, scopes: [...scopes], takesPart, expiresAtMs };
}

interface AccessParts {
  readonly authenticator: Pick<KeyAuthenticator, 'principal' | 'verify' | 'onChange' | 'onGap'>;
  readonly changes: Pick<KeyChanges, 'subscribe'>;
  readonly channels: ListenedChannels;
  readonly log: Pick<Platform['log'], 'error'>;
}

/** See the port. Grants of the same key, or of the same channel, share one look-up. */
export class KeyedListenerAccess implements ListenerAccess {
  readonly #authenticator: AccessParts['authenticator'];
  readonly #changes: AccessParts['changes'];
  readonly #channels: ListenedChannels;
  readonly #log: AccessParts['log'];

  constructor({ authenticator, changes, channels, log }: AccessParts) {
    this.#authenticator = authenticator;
    this.#changes = changes;
    this.#channels = channels;
    this.#log = log;
  }

  admit(grant: Grant): Grant | null | Promise<Grant | null> {
    const principal = this.#authenticator.principal(grant.keyId);
    return principal instanceof Promise ? principal.then((found) => asOf(grant, found)) : asOf(grant, principal);
  }

  async checkKeys(grants: readonly Grant[]): Promise<readonly CheckedKey[]> {
    const keys = new Map<EntityId, Promise<CheckedKey>>();
    return Promise.all(
      grants.map(({ keyId }) => {
        const found = keys.get(keyId) ?? this.#checkKey(keyId);
        keys.set(keyId, found);
        return found;
      }),
    );
  }

  async takingPart(grants: readonly Grant[]): Promise<readonly (boolean | null)[]> {
    const channels = new Map<string, Promise<ReadonlySet<EntityId> | null>>();
    return Promise.all(
      grants.map(async (grant) => {
        if (grant.principalType !== 'user') return null;
        const name = `${grant.organizationId} ${grant.channelId}`;
        const users = channels.get(name) ?? this.#usersOf(grant);
        channels.set(name, users);
        return (await users)?.has(grant.principalId) ?? null;
      }),
    );
  }

  /** A key that cannot be read, for whatever reason, decides nothing about others. */
  async #checkKey(keyId: EntityId): Promise<CheckedKey> {
    try {
      const found = await this.#authenticator.verify(keyId);
      return found === null ? 'lost' : { expiresAtMs: found.principal.expiresAtMs, ageMs: found.ageMs };
    } catch (error) {
      if (!(error instanceof Fault)) this.#log.error({ err: error, key: keyId }, 'a key could not be read');
      return 'unknown';
    }
  }

  /** @returns null when it is not known. Taking part decides nothing about access to the data, so this fails open. */
  async #usersOf({ organizationId, channelId }: Grant): Promise<ReadonlySet<EntityId> | null> {
    try {
      return await this.#channels.usersOf(organizationId, channelId);
    } catch (error) {
      if (error instanceof Fault) return null;
      throw error;
    }
  }

  onChange(listener: (change: AccessChange) => void): () => void {
    return this.#changes.subscribe({
      onChange: (change) => {
        // First: the listener may ask for a check at once.
        this.#authenticator.onChange(change);
        listener(accessChange(change));
      },
      onGap: () => {
        this.#authenticator.onGap();
        listener({ kind: 'doubtful', concerns: () => true });
      },
    });
  }
}

/** @returns the grant with the present end of its key; null if the key has ended */
function asOf(grant: Grant, principal: Principal | null): Grant | null {
  return principal === null ? null : { ...grant, expiresAtMs: principal.expiresAtMs };
}

function accessChange(change: KeyChange): AccessChange {
  switch (change.kind) {
    case 'revoked':
      return { kind: 'lost', concerns: ({ keyId }) => keyId === change.keyId };
    case 'changed':
      return { kind: 'doubtful', concerns: ({ keyId }) => keyId === change.keyId };
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
