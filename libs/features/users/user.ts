/*
 * Event names and shapes are the storage format: written events stay in the log forever.
 * Never change one in place. A new version is a new type, and the old one gets an upcaster.
 */
import { z } from 'zod';

import type { Timestamp } from '#libs/kernel/clock.ts';
import { accept, refuse, type Decision, type Fold } from '#libs/kernel/decider.ts';
import { changedBy, createdBy, type EntityState } from '#libs/kernel/entity.ts';
import { derivedId, type EntityId } from '#libs/kernel/ids.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';

/** Category of the streams, `user-<id>`. A user belongs to one organization, for good. */
export const USER = 'user';

export const userCodec = defineEvents({
  'UserCreated.v1': z.object({
    id: z.string(),
    displayName: z.string(),
    email: z.string().nullable(),
    imageUrl: z.string().nullable(),
    /** The id of the user with a token issuer, which the id in Parley follows from. Absent for others. */
    subject: z.object({ issuer: z.string(), id: z.string() }).optional(),
  }),
  'UserRenamed.v1': z.object({ displayName: z.string() }),
  'UserEmailChanged.v1': z.object({ email: z.string().nullable() }),
  'UserImageChanged.v1': z.object({ imageUrl: z.string().nullable() }),
  /** For good: processes that have seen it need not read the user again. */
  'UserDeactivated.v1': z.object({}),
});

export type UserEvent = EventOf<typeof userCodec>;
export type UserCreated = Extract<UserEvent, { type: 'UserCreated.v1' }>['data'];

/** A person who uses Parley on behalf of an organization. */
export type User = UserCreated & EntityState & { readonly deactivatedAt: Timestamp | null };

/** `null` until the user is created. */
export type UserState = User | null;

export const userFold: Fold<UserState, UserEvent> = {
  initialState: null,
  evolve(state, event) {
    if (event.type === 'UserCreated.v1') return { ...event.data, ...createdBy(event), deactivatedAt: null };
    if (state === null) return state;
    const changed = { ...state, ...changedBy(event) };
    if (event.type === 'UserDeactivated.v1') return { ...changed, deactivatedAt: changed.modified };
    // Every other event carries what it changes under the name that the state has for it.
    return { ...changed, ...event.data };
  },
};

const USERS_OF_ISSUERS: EntityId = '0d4c3f0a-3f5e-5b7e-9a54-6f2a1f0b5d11';

/**
 * The id of a user that a token issuer knows by a subject. The same subject of two issuers is two users, and issuers of
 * other organizations have users of their own.
 */
export function userIdOf(of: {
  readonly organizationId: EntityId;
  readonly issuer: string;
  readonly subject: string;
}): EntityId {
  return derivedId(USERS_OF_ISSUERS, JSON.stringify([of.organizationId, of.issuer, of.subject]));
}

/** Whether the user belongs to the organization and can act: only then do its keys work. */
export function isActiveUser(user: UserState, organizationId: EntityId): boolean {
  return user !== null && user.organizationId === organizationId && user.deactivatedAt === null;
}

export type UserRejection = { readonly reason: 'deactivated' };

/** Fields to change; absent ones stay as they are, `null` clears. */
interface UserChanges {
  readonly displayName?: string | undefined;
  readonly email?: string | null | undefined;
  readonly imageUrl?: string | null | undefined;
}

export function decideUpdate(user: User, changes: UserChanges): Decision<UserEvent, UserRejection> {
  if (user.deactivatedAt !== null) return refuse({ reason: 'deactivated' });
  const { displayName, email, imageUrl } = changes;
  const events: UserEvent[] = [];
  if (displayName !== undefined && displayName !== user.displayName) {
    events.push({ type: 'UserRenamed.v1', data: { displayName } });
  }
  if (email !== undefined && email !== user.email) events.push({ type: 'UserEmailChanged.v1', data: { email } });
  if (imageUrl !== undefined && imageUrl !== user.imageUrl) {
    events.push({ type: 'UserImageChanged.v1', data: { imageUrl } });
  }
  return accept(...events);
}

export function decideDeactivate(user: User): Decision<UserEvent, never> {
  return user.deactivatedAt === null ? accept({ type: 'UserDeactivated.v1', data: {} }) : accept();
}
