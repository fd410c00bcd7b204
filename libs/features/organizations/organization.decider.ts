import type { Timestamp } from '#libs/kernel/clock.ts';
import type { Decision, Fold } from '#libs/kernel/decider.ts';
import { accept, refuse } from '#libs/kernel/decider.ts';
import type { StreamRevision } from '#libs/kernel/event.ts';

import type { OrganizationCreated, OrganizationEvent } from './organization.events.ts';

/** A tenant: everything else in Parley belongs to exactly one. */
export interface Organization extends OrganizationCreated {
  readonly createdAt: Timestamp;
  readonly modified: Timestamp;
  readonly changedRevision: StreamRevision;
}

/** `null` until the organization is created. */
export type OrganizationState = Organization | null;

export type OrganizationRejection = { readonly reason: 'not_found' };

type OrganizationDecision = Decision<OrganizationEvent, OrganizationRejection>;

export const organizationFold: Fold<OrganizationState, OrganizationEvent> = {
  initialState: null,
  evolve(state, event) {
    const { at } = event.metadata;
    if (event.type === 'OrganizationCreated.v1') {
      return { ...event.data, createdAt: at, modified: at, changedRevision: event.revision };
    }
    // Every other event carries what it changes under the name that the state has for it.
    return state === null ? state : { ...state, ...event.data, modified: at, changedRevision: event.revision };
  },
};

/** Creates the organization. Its id is new, so one that exists was made by this very command before. */
export function decideCreate(state: OrganizationState, organization: OrganizationCreated): OrganizationDecision {
  return state === null ? accept({ type: 'OrganizationCreated.v1', data: organization }) : accept();
}

/** Fields to change; absent ones stay as they are, `null` clears. */
export interface OrganizationChanges {
  readonly name?: string | undefined;
  readonly application?: OrganizationCreated['application'] | undefined;
  readonly ownerUserId?: string | null | undefined;
}

export function decideUpdate(state: OrganizationState, changes: OrganizationChanges): OrganizationDecision {
  if (state === null) return refuse({ reason: 'not_found' });
  const { name, application, ownerUserId } = changes;
  const events: OrganizationEvent[] = [];
  if (name !== undefined && name !== state.name) events.push({ type: 'OrganizationRenamed.v1', data: { name } });
  if (application !== undefined && application !== state.application) {
    events.push({ type: 'OrganizationApplicationChanged.v1', data: { application } });
  }
  if (ownerUserId !== undefined && ownerUserId !== state.ownerUserId) {
    events.push({ type: 'OrganizationOwnerChanged.v1', data: { ownerUserId } });
  }
  return accept(...events);
}
