import { z } from 'zod';

import { organizationReference } from '#libs/features/organizations/index.ts';
import {
  idParam,
  idReference,
  pageMetaSchema,
  pageQuery,
  queryBoolean,
  text,
  timestamp,
} from '#libs/platform/http/index.ts';

import { keyScope } from './key.events.ts';

const principal = z.object({ type: z.enum(['user', 'service']), id: idReference() });

const expiresAt = timestamp({ description: 'When the key stops working; in the future' });

export const keySchema = z
  .object({
    id: z.string(),
    organization_id: z.string(),
    name: z.string(),
    principal: z.object({ type: z.enum(['user', 'service']), id: z.string() }),
    scopes: z.array(keyScope),
    last_four: z.string().describe('Last four characters of the secret'),
    created_at: z.string(),
    expires_at: z.string().nullable().describe('When it stops working: its expiry, or the end of its grace'),
    revoked_at: z.string().nullable(),
    rotated_from: z.string().nullable(),
    rotated_to: z.string().nullable(),
  })
  .meta({ id: 'ApiKey' });

export const newKeySchema = keySchema
  .extend({
    key: z
      .string()
      .nullable()
      .describe('The secret, shown this once. Null when an `Idempotency-Key` replays the answer: it is not stored'),
  })
  .meta({ id: 'NewApiKey' });

export const keyPageSchema = z.object({ items: z.array(keySchema), meta: pageMetaSchema }).meta({ id: 'ApiKeyPage' });

export const createKeyBody = z
  .object({
    name: text({ min: 1, max: 256, description: 'What the key is for' }),
    scopes: z
      .array(keyScope)
      .min(1)
      .max(16)
      .describe('What the key may do: at most what the calling key may do. `impersonate`: act as others'),
    principal: principal
      .optional()
      .describe('Who acts with the key: a user of the organization, or a service. Without it, the caller'),
    expires_at: expiresAt
      .nullish()
      .describe(
        'When the key stops working; in the future, and no later than the calling key. Without it, that of the calling key. Null: never',
      ),
    organization_id: organizationReference,
  })
  .meta({ id: 'ApiKeyCreate' });
export type CreateKeyBody = z.infer<typeof createKeyBody>;

const MAX_GRACE_SECONDS = 90 * 24 * 60 * 60;

export const rotateKeyBody = z
  .object({
    grace_seconds: z
      .int()
      .min(0)
      .max(MAX_GRACE_SECONDS)
      .nullish()
      .describe('How long the old key works on; without it, until it is revoked'),
    expires_at: expiresAt.nullish().describe('Expiry of the new key; without it, that of the old one. Null: none'),
  })
  .nullish()
  .meta({ id: 'ApiKeyRotate' });

export const keyParams = z.object({ id: idParam('Id of the key') });

export const keyQuery = z.object({ organization_id: organizationReference });

export const listKeysQuery = z.object({
  ...pageQuery,
  principal_id: idReference({ description: 'Only keys of this user or service' }).optional(),
  is_revoked: queryBoolean({ description: 'Only keys that were revoked, or that were not' }).optional(),
  organization_id: organizationReference,
});
