import { z } from 'zod';

import type { ChannelAccess, Channels } from '#libs/features/channels/index.ts';
import type { CallerAuthenticator } from '#libs/features/members/index.ts';
import { unreachable } from '#libs/kernel/decider.ts';
import { Fault } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { grantFor } from '#libs/platform/entity/index.ts';
import { notFound, type Principal } from '#libs/platform/http/index.ts';
import {
  type AccessChange,
  type ChannelGrant,
  type CheckedKey,
  type Grant,
  type LiveAccess,
  earliest,
} from '#libs/platform/live/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import type { AnnouncedChange, Announcements } from '#libs/platform/announcements/index.ts';

export const grantSchema = z.object({
  organizationId: z.string(),
  channelId: z.string(),
  principalType: z.enum(['user', 'service', 'system']),
  principalId: z.string(),
  keyId: z.string(),
  /** The scopes of the key when the ticket was issued. */
  scopes: z.array(z.string()),
  /** Absent in tickets of earlier versions, which knew no members. */
  isMember: z.boolean().default(false),
  /** The principal is a user that takes part in the channel; its removal ends the subscription. */
  takesPart: z.boolean(),
  /** Unix milliseconds; null if the key does not expire. */
  expiresAtMs: z.number().nullable(),
}) satisfies z.ZodType<ChannelGrant>;

/** Participants of channels, from the log or the read model. Throws `store_unavailable` faults. */
export type ChannelUsers = Pick<Channels, 'usersOf'>;

const NOT_NEEDED = { ageMs: 0 };

/**
 * The grant of a principal, which may subscribe to what it may read: every channel of its organization.
 *
 * @throws HttpError 404 for a channel that the organization does not have
 */
export async function grantOf(
  principal: Principal,
  channelId: EntityId,
  channels: ChannelUsers,
): Promise<ChannelGrant> {
  const { organizationId, principalType, principalId } = principal;
  const users = await channels.usersOf(organizationId, channelId);
  if (users === null) throw notFound();
  const takesPart = principalType === 'user' && users.has(principalId);
  return { ...grantFor(principal, channelId), channelId, takesPart };
}

export interface AccessParts {
  /** Decides on keys and their users from the log, as strictly as in the authentication of a request. */
  readonly keys: Pick<CallerAuthenticator, 'principal' | 'verify'>;
  readonly announcements: Pick<Announcements, 'listen' | 'receive'>;
  readonly channels: ChannelUsers;
  /** Decides which channels members may come into. */
  readonly members: Pick<ChannelAccess, 'admission'>;
  readonly log: Pick<Platform['log'], 'error'>;
}

/**
 * Decides which grants may open a connection, and which may keep it. Omits the time between two checks: the caller closes
 * connections whose key expires or cannot be verified.
 */
export class SubscriberAccess implements LiveAccess {
  readonly #parts: AccessParts;

  constructor(parts: AccessParts) {
    this.#parts = parts;
  }

  /**
   * @returns the grant with the current expiry of its key; null if the key has ended
   * @throws `Fault` `store_unavailable` when that cannot be decided
   */
  admit(grant: ChannelGrant): ChannelGrant | null | Promise<ChannelGrant | null> {
    if (grant.isMember) return this.#admitMember(grant);
    const key = this.#parts.keys.principal(grant.keyId);
    return key instanceof Promise ? key.then((found) => withExpiryOf(found, grant)) : withExpiryOf(key, grant);
  }

  async #admitMember(grant: ChannelGrant): Promise<ChannelGrant | null> {
    const key = await this.#parts.keys.principal(grant.keyId);
    const isAdmitted = key !== null && (await this.#parts.members.admission(grant, grant.channelId)) !== null;
    return isAdmitted ? withExpiryOf(key, grant) : null;
  }

  /** Whether the key still works, and of a member also whether it still takes part in the channel. Never rejects. */
  async check(grant: Grant): Promise<CheckedKey> {
    const { keyId, channelId, isMember } = grant;
    try {
      const [found, admission] = await Promise.all([
        this.#parts.keys.verify(keyId),
        isMember && channelId !== null ? this.#parts.members.admission(grant, channelId) : NOT_NEEDED,
      ]);
      if (found === null || admission === null) return 'lost';
      return { expiresAtMs: found.principal.expiresAtMs, ageMs: Math.max(found.ageMs, admission.ageMs) };
    } catch (error) {
      if (!(error instanceof Fault)) this.#parts.log.error({ err: error, key: keyId }, 'a key could not be read');
      return 'unknown';
    }
  }

  /**
   * The users that take part in a channel; null if that is unknown: participation does not decide about access to the
   * data, so this fails open. May wait for a fold of the channel, so checks that end access must not wait for it.
   */
  async usersOf(organizationId: EntityId, channelId: EntityId): Promise<ReadonlySet<EntityId> | null> {
    try {
      return await this.#parts.channels.usersOf(organizationId, channelId);
    } catch (error) {
      if (error instanceof Fault) return null;
      throw error;
    }
  }

  /** Calls `handler` immediately with changes that end access, or may, until the returned function is called. */
  onChange(handler: (change: AccessChange) => void): () => void {
    const { announcements } = this.#parts;
    // The authenticators listen, too, and before the handler, which may check a key.
    const stopListening = announcements.listen({
      onChange: (change) => {
        const changed = accessChange(change);
        if (changed !== null) handler(changed);
      },
      onGap: () => handler({ kind: 'doubtful', concerns: () => true }),
    });
    const stopReceiving = announcements.receive();
    return () => {
      stopListening();
      stopReceiving();
    };
  }
}

function withExpiryOf(key: Principal | null, grant: ChannelGrant): ChannelGrant | null {
  if (key === null || key.expiresAtMs === grant.expiresAtMs) return key && grant;
  return { ...grant, expiresAtMs: earliest(key.expiresAtMs, grant.expiresAtMs) };
}

function accessChange(change: AnnouncedChange): AccessChange | null {
  switch (change.kind) {
    case 'changed':
    case 'revoked':
      return { kind: change.kind === 'revoked' ? 'lost' : 'doubtful', concerns: ({ keyId }) => keyId === change.keyId };
    case 'user-deactivated':
      return {
        kind: 'lost',
        concerns: ({ organizationId, principalType, principalId }) =>
          principalType === 'user' && principalId === change.userId && organizationId === change.organizationId,
      };
    case 'participant-removed':
      return { kind: 'doubtful', concerns: ({ channelId }) => channelId === change.channelId };
    case 'issuer-changed':
      return { kind: 'doubtful', concerns: () => true };
    case 'organization-changed':
      return null;
    default:
      return unreachable(change);
  }
}
