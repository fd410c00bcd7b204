import type { Timestamp } from '#libs/kernel/clock.ts';
import type { Decision, Fold } from '#libs/kernel/decider.ts';
import { accept, refuse } from '#libs/kernel/decider.ts';
import type { StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

import type { UserCreated, UserEvent } from './user.events.ts';

/** A person who uses Parley on behalf of an organization. */
export interface User extends UserCreated {
  readonly organizationId: EntityId;
  readonly createdAt: Timestamp;
  readonly modified: Timestamp;
  readonly deactivatedAt: Timestamp | null;
  readonly changedRevision: StreamRevision;
}

/** `null` until the user is created. */
export type UserState = User | null;

export type UserRejection = { readonly reason: 'not_found' } | { readonly reason: 'deactivated' };

type UserDecision = Decision<UserEvent, UserRejection>;

/** Whose user a command expects to find. */
export interface UserTarget {
  readonly organizationId: EntityId;
}

export const userFold: Fold<UserState, UserEvent> = {
  initialState: null,
  evolve(state, event) {
    const { at, organizationId } = event.metadata;
    if (event.type === 'UserCreated.v1') {
      return {
        ...event.data,
        organizationId,
        createdAt: at,
        modified: at,
        deactivatedAt: null,
        changedRevision: event.revision,
      };
    }
    if (state === null) return state;
    const changed = { ...state, modified: at, changedRevision: event.revision };
    if (event.type === 'UserDeactivated.v1') return { ...changed, deactivatedAt: at };
    // Every other event carries what it changes under the name that the state has for it.
    return { ...changed, ...event.data };
  },
};

/** Creates the user. Its id is new, so one that exists was made by this very command before. */
export function decideCreate(state: UserState, user: UserCreated): UserDecision {
  return state === null ? accept({ type: 'UserCreated.v1', data: user }) : accept();
}

/** Fields to change; absent ones stay as they are, `null` clears. */
export interface UserChanges {
  readonly displayName?: string | undefined;
  readonly email?: string | null | undefined;
  readonly imageUrl?: string | null | undefined;
}

export function decideUpdate(state: UserState, target: UserTarget, changes: UserChanges): UserDecision {
  const found = find(state, target);
  if (!found.ok) return found;
  const { user } = found;
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

export function decideDeactivate(state: UserState, target: UserTarget): UserDecision {
  const found = find(state, target);
  if (!found.ok) return found;
  return found.user.deactivatedAt === null ? accept({ type: 'UserDeactivated.v1', data: {} }) : accept();
}

type Found = { readonly ok: true; readonly user: User } | Extract<UserDecision, { ok: false }>;

/** Another organization's user is refused just as one that does not exist. */
function find(state: UserState, target: UserTarget): Found {
  if (state === null || state.organizationId !== target.organizationId) return refuse({ reason: 'not_found' });
  return { ok: true, user: state };
}
