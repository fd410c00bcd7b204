/*
 * These names and shapes are the storage format: what was written with them stays in the log for ever.
 * Never change one in place. A new version is a new type, the old one moves to
 * organization.events.history.ts with an upcaster.
 */
import { z } from 'zod';

import { defineEvents } from '#libs/platform/eventstore/index.ts';
import type { EventOf } from '#libs/platform/eventstore/index.ts';

/** Category of the streams, `organization-<id>`. Their events belong to the organization itself. */
export const ORGANIZATION = 'organization';

/** The application that an organization belongs to (contract, section 2.3). */
export const organizationApplication = z.enum(['app_main', 'app_two', 'app_three', 'app_four', 'health', 'app_five']);

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
