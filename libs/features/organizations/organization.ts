/*
 * Event names and shapes are the storage format: written events stay in the log forever.
 * Never change one in place. A new version is a new type, and the old one gets an upcaster.
 */
import { z } from 'zod';

import { accept, type Decision, type Fold } from '#libs/kernel/decider.ts';
import { changedBy, createdBy, type EntityState } from '#libs/kernel/entity.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';

/** Category of the streams, `organization-<id>`. Their events belong to the organization itself. */
export const ORGANIZATION = 'organization';

/** The application that an organization belongs to (contract, section 2.3). */
export const organizationApplication = z
  .enum(['app_main', 'app_two', 'app_three', 'app_four', 'health', 'app_five'])
  .meta({ id: 'OrganizationApplication' });

export const organizationCodec = defineEvents({
  'OrganizationCreated.v1': z.object({
    id: z.string(),
    name: z.string(),
    application: organizationApplication.nullable(),
    ownerUserId: z.string().nullable(),
  }),
  'OrganizationRenamed.v1': z.object({ name: z.string() }),
  'OrganizationApplicationChanged.v1': z.object({ application: organizationApplication.nullable() }),
  'OrganizationOwnerChanged.v1': z.object({ ownerUserId: z.string().nullable() }),
});

export type OrganizationEvent = EventOf<typeof organizationCodec>;
export type OrganizationCreated = Extract<OrganizationEvent, { type: 'OrganizationCreated.v1' }>['data'];

/** A tenant: everything else in Parley belongs to exactly one. */
export type Organization = OrganizationCreated & EntityState;

/** `null` until the organization is created. */
export type OrganizationState = Organization | null;

export const organizationFold: Fold<OrganizationState, OrganizationEvent> = {
  initialState: null,
  evolve(state, event) {
    if (event.type === 'OrganizationCreated.v1') return { ...event.data, ...createdBy(event) };
    // Every other event carries what it changes under the name that the state has for it.
    return state && { ...state, ...event.data, ...changedBy(event) };
  },
};

/** Fields to change; absent ones stay as they are, `null` clears. */
export interface OrganizationChanges {
  readonly name?: string | undefined;
  readonly application?: OrganizationCreated['application'] | undefined;
  readonly ownerUserId?: string | null | undefined;
}

export function decideUpdate(
  organization: Organization,
  { name, application, ownerUserId }: OrganizationChanges,
): Decision<OrganizationEvent, never> {
  const events: OrganizationEvent[] = [];
  if (name !== undefined && name !== organization.name) events.push({ type: 'OrganizationRenamed.v1', data: { name } });
  if (application !== undefined && application !== organization.application) {
    events.push({ type: 'OrganizationApplicationChanged.v1', data: { application } });
  }
  if (ownerUserId !== undefined && ownerUserId !== organization.ownerUserId) {
    events.push({ type: 'OrganizationOwnerChanged.v1', data: { ownerUserId } });
  }
  return accept(...events);
}
