import type { FastifyReply, FastifyRequest } from 'fastify';

import { targetContext, targetOrganization } from '#libs/features/organizations/index.ts';
import type { OrganizationQueries } from '#libs/features/organizations/index.ts';
import { unreachable } from '#libs/kernel/decider.ts';
import {
  conflict,
  etagOf,
  notFound,
  notModified,
  openPage,
  sendJson,
  sendPage,
  setPosition,
} from '#libs/platform/http/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import { streamName } from '#libs/platform/readmodel/index.ts';

import type { UserRejection } from './user.decider.ts';
import { USER } from './user.events.ts';
import type { UserCommands, UserResult } from './users.commands.ts';
import { userResource } from './users.projection.ts';
import type { UserQueries } from './users.queries.ts';
import {
  createUserBody,
  listUsersQuery,
  updateUserBody,
  userPageSchema,
  userParams,
  userQuery,
  userSchema,
} from './users.schemas.ts';

export interface UserRouteParts {
  readonly commands: UserCommands;
  readonly queries: UserQueries;
  readonly organizations: OrganizationQueries;
}

const tags = ['users'];
const read = { scope: 'read' };
const admin = { scope: 'admin' };

/** Declares the routes of users: reads first, then commands. */
export function userRoutes(app: HttpApp, parts: UserRouteParts): void {
  readRoutes(app, parts);
  createRoute(app, parts);
  updateRoute(app, parts);
  deactivateRoute(app, parts);
}

function readRoutes(app: HttpApp, { queries, organizations }: UserRouteParts): void {
  app.get(
    '/api/v1/users',
    {
      config: read,
      schema: {
        operationId: 'listUsers',
        summary: 'List users, newest first',
        tags,
        querystring: listUsersQuery,
        response: { 200: userPageSchema },
      },
    },
    async (request, reply) => {
      const { is_active: isActive, organization_id: requested } = request.query;
      const organizationId = await targetOrganization(request.principal, requested, organizations);
      const page = openPage(request, request.query, { isActive, organizationId });
      const found = await queries.list(organizationId, { isActive }, page);
      const items = found.documents.map((document) => document.json);
      return sendPage(reply, items, page.meta(found));
    },
  );

  app.get(
    '/api/v1/users/:id',
    {
      config: read,
      schema: {
        operationId: 'getUser',
        summary: 'Read a user',
        tags,
        params: userParams,
        querystring: userQuery,
        response: { 200: userSchema },
      },
    },
    async (request, reply) => {
      const organizationId = await targetOrganization(request.principal, request.query.organization_id, organizations);
      const found = await queries.document(organizationId, request.params.id);
      if (found === null) throw notFound();
      if (notModified(request, reply, found.revision)) return reply;
      return sendJson(reply, found.json);
    },
  );
}

function createRoute(app: HttpApp, { commands, organizations }: UserRouteParts): void {
  app.post(
    '/api/v1/users',
    {
      config: admin,
      schema: {
        operationId: 'createUser',
        summary: 'Create a user',
        tags,
        body: createUserBody,
        response: { 200: userSchema },
      },
    },
    async (request, reply) => {
      const { display_name: displayName, email = null, image_url: imageUrl = null } = request.body;
      const context = await targetContext(request, request.body.organization_id, organizations);
      const result = await commands.create(context, { id: context.commandId, displayName, email, imageUrl });
      return sendUser(request, reply, result);
    },
  );
}

function updateRoute(app: HttpApp, { commands, organizations }: UserRouteParts): void {
  app.patch(
    '/api/v1/users/:id',
    {
      config: admin,
      schema: {
        operationId: 'updateUser',
        summary: 'Update a user',
        tags,
        params: userParams,
        querystring: userQuery,
        body: updateUserBody,
        response: { 200: userSchema },
      },
    },
    async (request, reply) => {
      const { display_name: displayName, email, image_url: imageUrl } = request.body;
      const context = await targetContext(request, request.query.organization_id, organizations);
      const changes = { displayName, email, imageUrl };
      const result = await commands.update(context, request.params.id, changes);
      return sendUser(request, reply, result);
    },
  );
}

function deactivateRoute(app: HttpApp, { commands, organizations }: UserRouteParts): void {
  app.delete(
    '/api/v1/users/:id',
    {
      config: admin,
      schema: {
        operationId: 'deactivateUser',
        summary: 'Deactivate a user for good: its API keys stop working at once',
        tags,
        params: userParams,
        querystring: userQuery,
        response: { 200: userSchema },
      },
    },
    async (request, reply) => {
      const context = await targetContext(request, request.query.organization_id, organizations);
      return sendUser(request, reply, await commands.deactivate(context, request.params.id));
    },
  );
}

/** Answers a command with the user as it left it. */
function sendUser(request: FastifyRequest, reply: FastifyReply, result: UserResult): FastifyReply {
  if (!result.ok) throw errorOf(result.rejection);
  const { user, revision } = result;
  // A position opens only for its own organization; whoever acts on another one reads what it wrote anyhow.
  if (user.organizationId === request.principal.organizationId) {
    setPosition(request, reply, { stream: streamName(USER, user.id), revision });
  }
  void reply.header('etag', etagOf(user.changedRevision));
  return sendJson(reply, JSON.stringify(userResource(user)));
}

function errorOf(rejection: UserRejection): Error {
  switch (rejection.reason) {
    case 'not_found':
      return notFound();
    case 'deactivated':
      return conflict('The user is deactivated', 'deactivated');
    default:
      return unreachable(rejection);
  }
}
