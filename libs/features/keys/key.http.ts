import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';

import { organizationReference, type Organizations } from '#libs/features/organizations/index.ts';
import { systemClock, type Timestamp } from '#libs/kernel/clock.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { declareReads, EntityReplies, type RejectionErrors } from '#libs/platform/entity/index.ts';
import {
  conflict,
  forbidden,
  type HttpApp,
  idParam,
  idReference,
  invalid,
  type Principal,
  queryBoolean,
  refuseIfMatch,
  requireKnownKey,
  routesTagged,
  sendJson,
  text,
  timestamp,
} from '#libs/platform/http/index.ts';

import { keyEntity, type KeyFacets, type Keys, keySchema, type NewKeyResult, principalType } from './key.read.ts';
import { keyAccess, keyScope, type KeyEvent, type KeyIssued, type KeyRejection, type KeyState } from './key.ts';

const principal = z.object({ type: principalType, id: idReference() });

const expiresAt = timestamp({ description: 'Expiry of the key; must be in the future' });

const newKeySchema = keySchema
  .extend({
    key: z
      .string()
      .nullable()
      .describe('The secret, which is not stored: null if an `Idempotency-Key` replays the response'),
  })
  .meta({ id: 'CreatedApiKey' });

const createKeyBody = z
  .object({
    name: text({ min: 1, max: 256, description: 'Purpose of the key' }),
    scopes: z
      .array(keyScope)
      .min(1)
      .max(16)
      .describe(
        'Must be scopes of the calling key. `impersonate` allows acting as other users and agents, `agent` answering as the external agent whose id is that of the service',
      ),
    principal: principal
      .optional()
      .describe('The user of the organization, or the service, that the key authenticates. Default: the caller'),
    access: keyAccess
      .optional()
      .describe(
        '`participation`: only the channels in which its user takes part, with the scopes `read` and `write` alone; the default for a key of a user. `organization`: everything in the organization; the default for a key of a service, which takes part in no channel',
      ),
    expires_at: expiresAt
      .nullish()
      .describe(
        'Expiry of the key; must be in the future, and no later than that of the calling key, which is the default. Null: the key does not expire',
      ),
    organization_id: organizationReference,
  })
  .meta({ id: 'ApiKeyCreate', examples: [{ name: 'backend', scopes: ['read', 'write'] }] });
type CreateKeyBody = z.infer<typeof createKeyBody>;

const MAX_GRACE_SECONDS = 90 * 24 * 60 * 60;

const rotateKeyBody = z
  .object({
    grace_seconds: z
      .int()
      .min(0)
      .max(MAX_GRACE_SECONDS)
      .nullish()
      .describe('Seconds until the old key stops working. Default: it works until it is revoked'),
    expires_at: expiresAt.nullish().describe('Expiry of the new key. Default: that of the old key. Null: none'),
  })
  .nullish()
  .meta({ id: 'ApiKeyRotate', examples: [{}] });

const params = z.object({ id: idParam('Id of the key', { isUuid: false }) });
const ofOrganization = z.object({ organization_id: organizationReference });

const errors: RejectionErrors<KeyRejection> = {
  scope_not_held: ({ scope }) =>
    forbidden(
      `The API key lacks the scope ${scope}, so it cannot create, rotate or revoke a key that has it`,
      'missing_scope',
    ),
  outlives_caller: ({ latest }) =>
    forbidden(`The calling API key ends at ${latest}: no key that it creates ends later`, 'outlives_caller'),
  user_not_active: () => conflict('The user that the key belongs to was deactivated', 'user_not_active'),
  not_active: () => conflict('The key has expired or was revoked', 'key_not_active'),
  rotated_already: () =>
    conflict('The key has a successor that works: rotate that one, or revoke it first', 'key_rotated'),
  two_active: () => conflict('The key and the one before it both work: revoke the older one first', 'two_keys_active'),
  withdrawn: () => conflict('Another rotation of the same key came first', 'conflict'),
};

type Replies = EntityReplies<KeyState, KeyEvent, KeyFacets, KeyRejection>;

const admins = routesTagged('keys').requiring('admin');
const ofOne = { params, querystring: ofOrganization };
const response = { 200: keySchema };

export function keyRoutes(app: HttpApp, keys: Keys, organizations: Organizations): void {
  const replies = new EntityReplies(keys, errors);
  readRoutes(app, replies, organizations);
  createRoute(app, replies, keys, organizations);
  rotateRoute(app, replies, keys, organizations);
  revokeRoute(app, replies, keys, organizations);
}

function readRoutes(app: HttpApp, replies: Replies, organizations: Organizations): void {
  declareReads(app, replies, {
    path: '/api/v1/keys',
    tag: 'keys',
    scope: 'admin',
    params,
    schema: keySchema,
    query: ofOrganization.shape,
    organizationOf: ({ principal, query }) => organizations.target(principal, query.organization_id),
    list: {
      operationId: 'listKeys',
      summary: 'List API keys, newest first',
      filters: {
        principal_id: idReference({ description: 'Only keys of this user or service' }).optional(),
        is_revoked: queryBoolean({ description: 'Only revoked keys, or only keys that are not revoked' }).optional(),
      },
      facets: ({ principal_id, is_revoked }) => ({ principal_id, is_revoked }),
    },
    one: { operationId: 'getKey', summary: 'Read an API key, without its secret' },
  });
}

function createRoute(app: HttpApp, replies: Replies, keys: Keys, organizations: Organizations): void {
  app.post(
    '/api/v1/keys',
    {
      preHandler: refuseIfMatch,
      ...admins({
        operationId: 'createKey',
        summary: 'Create an API key',
        description:
          'Only this response contains the secret. Repeating the request with its `Idempotency-Key` returns the same key with `"key": null`.',
        body: createKeyBody,
        response: { 200: newKeySchema },
      }),
    },
    async (request, reply) => {
      requireKnownKey(request);
      const { name, scopes, expires_at: expiresAt = expiryOf(request.principal) } = request.body;
      const context = await organizations.contextFor(request, request.body.organization_id);
      requireFuture(expiresAt);
      const principal = principalOf(request, context.organizationId, request.body);
      const { access = principal.type === 'user' ? 'participation' : 'organization' } = request.body;
      if (access === 'participation') requireMember(principal, request.body);
      const description = { name, scopes: [...new Set(scopes)], principal, access, expiresAt };
      const result = await keys.issue(context, description, request.principal);
      if (!result.ok && result.rejection.reason === 'user_not_active') {
        throw invalid(['body', 'principal', 'id'], 'the organization has no such active user', principal.id);
      }
      return sendNewKey(replies, request, reply, result);
    },
  );
}

function rotateRoute(app: HttpApp, replies: Replies, keys: Keys, organizations: Organizations): void {
  app.post(
    '/api/v1/keys/:id/rotate',
    admins({
      ...ofOne,
      operationId: 'rotateKey',
      summary: 'Rotate an API key: create a key with the same name, principal and scopes',
      description:
        'The calling key must have all scopes of the old key, and must not expire before the new one. The old key works until it is revoked, or for `grace_seconds`; at most two keys of a chain are valid at a time. The response is that of `createKey`.',
      body: rotateKeyBody,
      response: { 200: newKeySchema },
    }),
    async (request, reply) => {
      requireKnownKey(request);
      const { grace_seconds: graceSeconds, expires_at: expiresAt } = request.body ?? {};
      const context = await organizations.contextFor(request, request.query.organization_id);
      requireFuture(expiresAt);
      const result = await keys.rotate(context, request.params.id, {
        graceSeconds: graceSeconds ?? undefined,
        expiresAt,
        grantor: request.principal,
      });
      return sendNewKey(replies, request, reply, result);
    },
  );
}

function revokeRoute(app: HttpApp, replies: Replies, keys: Keys, organizations: Organizations): void {
  app.post(
    '/api/v1/keys/:id/revoke',
    admins({
      ...ofOne,
      operationId: 'revokeKey',
      summary: 'Revoke an API key permanently; it stops working immediately',
      description: 'The calling key must have all scopes of the revoked key.',
      response,
    }),
    async (request, reply) => {
      const context = await organizations.contextFor(request, request.query.organization_id);
      return replies.sendResult(request, reply, await keys.revoke(context, request.params.id, request.principal));
    },
  );
}

/**
 * Answers with a new key and its secret. The response stored under an `Idempotency-Key` lacks the secret: a repeated
 * request gets the same key with `"key": null`, and creates no second one.
 */
function sendNewKey(
  replies: Replies,
  request: FastifyRequest,
  reply: FastifyReply,
  result: NewKeyResult,
): FastifyReply {
  const resource = keyEntity.resource(replies.accepted(request, reply, result));
  void reply.header('cache-control', 'no-store');
  if (request.idempotentRun !== null) request.idempotentRun.storedBody = JSON.stringify({ ...resource, key: null });
  return sendJson(reply, JSON.stringify({ ...resource, key: result.ok ? result.secret : null }));
}

/** @throws ValidationFailure 422 */
function principalOf(
  request: FastifyRequest,
  organizationId: EntityId,
  { principal }: CreateKeyBody,
): KeyIssued['principal'] {
  if (principal !== undefined) return principal;
  const { principalType, principalId, organizationId: own } = request.principal;
  if (organizationId === own && principalType !== 'system') return { type: principalType, id: principalId };
  throw invalid(['body', 'principal'], 'Field required', request.body, 'missing');
}

/** @throws ValidationFailure 422 */
function requireMember({ type }: KeyIssued['principal'], { access, scopes }: CreateKeyBody): void {
  if (type !== 'user') throw invalid(['body', 'access'], 'only users take part in channels', access);
  const other = scopes.find((scope) => scope !== 'read' && scope !== 'write');
  if (other === undefined) return;
  const problem = `the scope ${other} concerns the organization: ask for the access "organization"`;
  throw invalid(['body', 'access'], problem, access);
}

/** @throws ValidationFailure 422 */
function requireFuture(expiresAt: string | null | undefined): void {
  if (typeof expiresAt === 'string' && expiresAt <= systemClock.now()) {
    throw invalid(['body', 'expires_at'], 'the time has passed already', expiresAt);
  }
}

function expiryOf({ expiresAtMs }: Principal): Timestamp | null {
  return expiresAtMs === null ? null : new Date(expiresAtMs).toISOString();
}
