import type { FastifyRequest } from 'fastify';

import type { Organizations } from '#libs/features/organizations/index.ts';
import { systemClock } from '#libs/kernel/clock.ts';
import type { Timestamp } from '#libs/kernel/clock.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import {
  invalid,
  notFound,
  notModified,
  openPage,
  refuseIfMatch,
  sendJson,
  sendPage,
} from '#libs/platform/http/index.ts';
import type { HttpApp, Principal } from '#libs/platform/http/index.ts';

import type { KeyIssued } from './key.events.ts';
import type { KeyCommands } from './keys.commands.ts';
import type { KeyQueries } from './keys.queries.ts';
import { sendKey, sendNewKey } from './keys.replies.ts';
import {
  createKeyBody,
  keyPageSchema,
  keyParams,
  keyQuery,
  keySchema,
  listKeysQuery,
  newKeySchema,
  rotateKeyBody,
} from './keys.schemas.ts';
import type { CreateKeyBody } from './keys.schemas.ts';

export interface KeyRouteParts {
  readonly commands: KeyCommands;
  readonly queries: KeyQueries;
  readonly organizations: Organizations;
}

const tags = ['keys'];
const admin = { scope: 'admin' };

/** Declares the routes of API keys: reads, then those that make keys, then the one that ends them. */
export function keyRoutes(app: HttpApp, parts: KeyRouteParts): void {
  readRoutes(app, parts);
  createRoute(app, parts);
  rotateRoute(app, parts);
  revokeRoute(app, parts);
}

function readRoutes(app: HttpApp, { queries, organizations }: KeyRouteParts): void {
  app.get(
    '/api/v1/keys',
    {
      config: admin,
      schema: {
        operationId: 'listKeys',
        summary: 'List API keys, newest first',
        tags,
        querystring: listKeysQuery,
        response: { 200: keyPageSchema },
      },
    },
    async (request, reply) => {
      const { principal_id: principalId, is_revoked: isRevoked, organization_id: requested } = request.query;
      const organizationId = await organizations.target(request.principal, requested);
      const page = openPage(request, request.query, { principalId, isRevoked, organizationId });
      const found = await queries.list(organizationId, { principalId, isRevoked }, page);
      const items = found.documents.map((document) => document.json);
      return sendPage(reply, items, page.meta(found));
    },
  );

  app.get(
    '/api/v1/keys/:id',
    {
      config: admin,
      schema: {
        operationId: 'getKey',
        summary: 'Read an API key, without its secret',
        tags,
        params: keyParams,
        querystring: keyQuery,
        response: { 200: keySchema },
      },
    },
    async (request, reply) => {
      const organizationId = await organizations.target(request.principal, request.query.organization_id);
      const found = await queries.key(organizationId, request.params.id);
      if (found === null) throw notFound();
      if (notModified(request, reply, found.revision)) return reply;
      return sendJson(reply, found.json);
    },
  );
}

function createRoute(app: HttpApp, { commands, organizations }: KeyRouteParts): void {
  app.post(
    '/api/v1/keys',
    {
      config: admin,
      preHandler: refuseIfMatch,
      schema: {
        operationId: 'createKey',
        summary: 'Create an API key',
        description:
          'The secret is in the answer and nowhere else, ever. A request that is repeated with its `Idempotency-Key` is answered with the same key and `"key": null`.',
        tags,
        body: createKeyBody,
        response: { 200: newKeySchema },
      },
    },
    async (request, reply) => {
      const { name, scopes, expires_at: expiresAt = expiryOf(request.principal) } = request.body;
      const context = await organizations.contextFor(request, request.body.organization_id);
      requireFuture(expiresAt);
      const principal = principalOf(request, context.organizationId, request.body);
      const description = { name, scopes: [...new Set(scopes)], principal, expiresAt };
      const result = await commands.issue(context, description, request.principal);
      if (!result.ok && result.rejection.reason === 'user_not_active') {
        throw invalid(['body', 'principal', 'id'], 'the organization has no such active user', principal.id);
      }
      return sendNewKey(request, reply, result);
    },
  );
}

function rotateRoute(app: HttpApp, { commands, organizations }: KeyRouteParts): void {
  app.post(
    '/api/v1/keys/:id/rotate',
    {
      config: admin,
      schema: {
        operationId: 'rotateKey',
        summary: 'Replace an API key by a new one of the same name, principal and scopes',
        description:
          'Takes a key that has all scopes of the old one and works at least as long as the new one. The old key works on until it is revoked, or for `grace_seconds`; at most two keys of a chain work at a time. Answers as the creation of a key does.',
        tags,
        params: keyParams,
        querystring: keyQuery,
        body: rotateKeyBody,
        response: { 200: newKeySchema },
      },
    },
    async (request, reply) => {
      const { grace_seconds: graceSeconds, expires_at: expiresAt } = request.body ?? {};
      const context = await organizations.contextFor(request, request.query.organization_id);
      requireFuture(expiresAt);
      const result = await commands.rotate(context, request.params.id, {
        graceSeconds: graceSeconds ?? undefined,
        expiresAt,
        grantor: request.principal,
      });
      return sendNewKey(request, reply, result);
    },
  );
}

function revokeRoute(app: HttpApp, { commands, organizations }: KeyRouteParts): void {
  app.post(
    '/api/v1/keys/:id/revoke',
    {
      config: admin,
      schema: {
        operationId: 'revokeKey',
        summary: 'Revoke an API key: it stops working at once, for good',
        description: 'Takes a key that has all scopes of the revoked one.',
        tags,
        params: keyParams,
        querystring: keyQuery,
        response: { 200: keySchema },
      },
    },
    async (request, reply) => {
      const context = await organizations.contextFor(request, request.query.organization_id);
      return sendKey(request, reply, await commands.revoke(context, request.params.id, request.principal));
    },
  );
}

/** @throws ValidationFailure 422 */
function principalOf(
  request: FastifyRequest,
  organizationId: EntityId,
  { principal }: CreateKeyBody,
): KeyIssued['principal'] {
  const { principalType, principalId, organizationId: own } = request.principal;
  if (principal === undefined) {
    if (organizationId === own) return { type: principalType, id: principalId };
    throw invalid(['body', 'principal'], 'Field required', request.body, 'missing');
  }
  return principal;
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
