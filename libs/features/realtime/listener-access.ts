import type { KeyChange, KeyChanges, KeyDirectory } from '#libs/features/keys/index.ts';
import { unreachable } from '#libs/kernel/decider.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { notFound } from '#libs/platform/http/index.ts';
import type { Principal } from '#libs/platform/http/index.ts';

import type { AccessChange, Grant, ListenerAccess } from './realtime.ports.ts';

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

/** See the port. However many grants: their keys are read together, and so are their channels. */
export class KeyedListenerAccess implements ListenerAccess {
  readonly #directory: Pick<KeyDirectory, 'areWorking'>;
  readonly #changes: Pick<KeyChanges, 'inform'>;
  readonly #channels: ListenedChannels;

  constructor(parts: {
    readonly directory: Pick<KeyDirectory, 'areWorking'>;
    readonly changes: Pick<KeyChanges, 'inform'>;
    readonly channels: ListenedChannels;
  }) {
    this.#directory = parts.directory;
    this.#changes = parts.changes;
    this.#channels = parts.channels;
  }

  async check(grants: readonly Grant[]): Promise<readonly (Grant | null)[]> {
    const channels = new Map<string, Promise<ReadonlySet<EntityId> | null>>();
    const usersOf = ({ organizationId, channelId }: Grant): Promise<ReadonlySet<EntityId> | null> => {
      const name = `${organizationId} ${channelId}`;
      const users = channels.get(name) ?? this.#channels.usersOf(organizationId, channelId);
      channels.set(name, users);
      return users;
    };
    const asOfNow = async (grant: Grant): Promise<Grant | null> => {
      if (grant.principalType !== 'user') return grant;
      const takesPart = (await usersOf(grant))?.has(grant.principalId) === true;
      if (takesPart === grant.takesPart) return grant;
      return takesPart ? { ...grant, takesPart } : null;
    };
    const [working, present] = await Promise.all([
      this.#directory.areWorking(grants),
      Promise.all(grants.map(asOfNow)),
    ]);
    return present.map((grant, index) => (working[index] === true ? grant : null));
  }

  onChange(listener: (change: AccessChange) => void): () => void {
    return this.#changes.inform({
      forget: (change) => listener(accessChange(change)),
      // Whatever was changed while nobody heard, or will be while nobody hears, may concern everybody.
      setHearing: () => listener({ kind: 'doubtful', concerns: () => true }),
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
