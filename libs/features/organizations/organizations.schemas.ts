/* Organizations as HTTP shows them: the contract's section 2.3, and what administration needs besides. */
import { z } from 'zod';

import { idParam, idReference, pageMetaSchema, pageQuery, text } from '#libs/platform/http/index.ts';

import { organizationApplication } from './organization.events.ts';

const name = text({ min: 1, max: 256, description: 'Name of the organization' });

export const organizationSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    owner: z.object({ display_name: z.string(), image_url: z.string() }).nullable(),
    application: organizationApplication.nullable(),
    owner_id: z.string().nullable().describe('Id of the user who owns the organization'),
    created_at: z.string(),
    modified: z.string(),
  })
  .meta({ id: 'Organization' });

export const organizationPageSchema = z
  .object({ items: z.array(organizationSchema), meta: pageMetaSchema })
  .meta({ id: 'OrganizationPage' });

export const createOrganizationBody = z
  .object({ name, application: organizationApplication.nullish() })
  .meta({ id: 'OrganizationCreate' });

/** Absent fields stay as they are, null clears. */
export const updateOrganizationBody = z
  .object({
    name: name.optional(),
    application: organizationApplication.nullish(),
    owner_id: idReference({ description: 'A user of the organization' }).nullish(),
  })
  .meta({ id: 'OrganizationUpdate' });

export const organizationParams = z.object({ id: idParam('Id of the organization') });

export const listOrganizationsQuery = z.object(pageQuery);
