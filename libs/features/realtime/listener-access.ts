import type { KeyAuthenticator, KeyChange, KeyChanges } from '#libs/features/keys/index.ts';
import { unreachable } from '#libs/kernel/decider.ts';
import { Fault } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { notFound } from '#libs/platform/http/index.ts';
import type { Principal } from '#libs/platform/http/index.ts';

import type { AccessChange, CheckedGrant, Grant, ListenerAccess } from './realtime.ports.ts';

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
  { organizationId, principalType, principalId, keyId, scopes }: Principal,
  channelId: EntityId,
  channels: ListenedChannels,
): Promise<Grant> {
  const users = await channels.usersOf(organizationId, channelId);
  if (users === null) throw notFound();
  const takesPart = principalType === 'user' && users.has(principalId);
  return { organizationId, channelId, principalType, principalId, keyId, scopes: [...scopes], takesPart };
}

interface AccessParts {
  readonly authenticator: Pick<KeyAuthenticator, 'principal' | 'check' | 'onChange' | 'onGap'>;
  readonly changes: Pick<KeyChanges, 'subscribe'>;
  readonly channels: ListenedChannels;
}

/** See the port. Grants of the same key, or of the same channel, share one look-up. */
export class KeyedListenerAccess implements ListenerAccess {
  readonly #authenticator: AccessParts['authenticator'];
  readonly #changes: AccessParts['changes'];
  readonly #channels: ListenedChannels;

  constructor({ authenticator, changes, channels }: AccessParts) {
    this.#authenticator = authenticator;
    this.#changes = changes;
    this.#channels = channels;
  }

  admit({ keyId }: Grant): boolean | Promise<boolean> {
    const principal = this.#authenticator.principal(keyId);
    return principal instanceof Promise ? principal.then((found) => found !== null) : principal !== null;
  }

  async check(grants: readonly Grant[]): Promise<readonly CheckedGrant[]> {
    const keys = new Map<EntityId, ReturnType<KeyAuthenticator['check']>>();
    const channels = new Map<string, Promise<ReadonlySet<EntityId> | null>>();
    const once = <K, V>(known: Map<K, V>, name: K, look: () => V): V => {
      const found = known.get(name) ?? look();
      known.set(name, found);
      return found;
    };
    return Promise.all(
      grants.map(async (grant): Promise<CheckedGrant> => {
        const { organizationId, channelId, keyId } = grant;
        const key = await once(keys, keyId, () => this.#authenticator.check(keyId));
        if (key !== 'works') return key === 'ended' ? 'lost' : 'unknown';
        if (grant.principalType !== 'user') return grant;
        const users = await once(channels, `${organizationId} ${channelId}`, () => this.#usersOf(grant));
        if (users === null) return grant;
        const takesPart = users.has(grant.principalId);
        return takesPart === grant.takesPart ? grant : { ...grant, takesPart };
      }),
    );
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
