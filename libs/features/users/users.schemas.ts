import { z } from 'zod';

import {
  httpUrl,
  idParam,
  idReference,
  pageMetaSchema,
  pageQuery,
  queryBoolean,
  text,
} from '#libs/platform/http/index.ts';

const displayName = text({ max: 256, description: 'Name that others see' });
/** Loose on purpose: whether an address receives mail, only mail can tell. */
const email = text({ max: 320, pattern: /^[^\s@]+@[^\s@]+$/, description: 'E-mail address' });

/** Of administrative requests: another organization than the caller's. */
export const organizationReference = idReference({
  description: 'Another organization than that of the key; needs the scope `platform`',
}).optional();

export const userSchema = z
  .object({
    id: z.string(),
    organization_id: z.string(),
    display_name: z.string(),
    email: z.string().nullable(),
    image_url: z.string().nullable(),
    is_active: z.boolean(),
    deactivated_at: z.string().nullable(),
    created_at: z.string(),
    modified: z.string(),
  })
  .meta({ id: 'User' });

export const userPageSchema = z.object({ items: z.array(userSchema), meta: pageMetaSchema }).meta({ id: 'UserPage' });

export const createUserBody = z
  .object({
    display_name: displayName.default(''),
    email: email.nullish(),
    image_url: httpUrl().nullish(),
    organization_id: organizationReference,
  })
  .meta({ id: 'UserCreate' });

/** Absent fields stay as they are, null clears. */
export const updateUserBody = z
  .object({ display_name: displayName.optional(), email: email.nullish(), image_url: httpUrl().nullish() })
  .meta({ id: 'UserUpdate' });

export const userParams = z.object({ id: idParam('Id of the user') });

export const userQuery = z.object({ organization_id: organizationReference });

export const listUsersQuery = z.object({
  ...pageQuery,
  is_active: queryBoolean({ description: 'Only users that are active, or that were deactivated' }).optional(),
  organization_id: organizationReference,
});
