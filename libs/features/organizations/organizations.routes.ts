import type { FastifyReply, FastifyRequest } from 'fastify';

import { unreachable } from '#libs/kernel/decider.ts';
import { faultAfterWrite } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { commandContext, etagOf, invalid, notFound, openPage, setPosition } from '#libs/platform/http/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import { streamName } from '#libs/platform/readmodel/index.ts';

import type { Organization, OrganizationRejection } from './organization.decider.ts';
import { ORGANIZATION } from './organization.events.ts';
import type { OrganizationCommands, OrganizationResult } from './organizations.commands.ts';
import { organizationResource } from './organizations.projection.ts';
import type { UserSummary } from './organizations.projection.ts';
import type { OrganizationQueries } from './organizations.queries.ts';
import {
  createOrganizationBody,
  listOrganizationsQuery,
  organizationPageSchema,
  organizationParams,
  organizationSchema,
  updateOrganizationBody,
} from './organizations.schemas.ts';
import { PLATFORM_SCOPE, targetOrganization } from './target-organization.ts';

/** Port: the users of an organization in short. Null for other organizations' users as for missing ones. */
export type SummarizeUser = (organizationId: EntityId, userId: EntityId) => Promise<UserSummary | null>;

export interface OrganizationRouteParts {
  readonly commands: OrganizationCommands;
  readonly queries: OrganizationQueries;
  readonly summarizeUser: SummarizeUser;
}

const tags = ['organizations'];
const platform = { scope: PLATFORM_SCOPE };

/** Declares the routes of organizations: reads first, then commands. */
export function organizationRoutes(app: HttpApp, parts: OrganizationRouteParts): void {
  readRoutes(app, parts);
  createRoute(app, parts);
  updateRoute(app, parts);
}

function readRoutes(app: HttpApp, { queries, summarizeUser }: OrganizationRouteParts): void {
  app.get(
    '/api/v1/organizations',
    {
      config: platform,
      schema: {
        operationId: 'listOrganizations',
        summary: 'List all organizations, newest first',
        tags,
        querystring: listOrganizationsQuery,
        response: { 200: organizationPageSchema },
      },
    },
    async (request) => {
      const page = openPage(request, request.query, {});
      const found = await queries.list(page);
      const items = await Promise.all(found.organizations.map((one) => resourceOf(one, summarizeUser)));
      return { items, meta: page.meta(found) };
    },
  );

  app.get(
    '/api/v1/organizations/:id',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'getOrganization',
        summary: "Read an organization: one's own, or any with the scope `platform`",
        tags,
        params: organizationParams,
        response: { 200: organizationSchema },
      },
    },
    async (request, reply) => {
      const id = await targetOrganization(request.principal, request.params.id, queries);
      const organization = await queries.organization(id);
      if (organization === null) throw notFound();
      // No 304: the answer shows the owner's name, of which the revision knows nothing.
      void reply.header('etag', etagOf(organization.changedRevision));
      return resourceOf(organization, summarizeUser);
    },
  );
}

function createRoute(app: HttpApp, { commands, summarizeUser }: OrganizationRouteParts): void {
  app.post(
    '/api/v1/organizations',
    {
      config: platform,
      schema: {
        operationId: 'createOrganization',
        summary: 'Create an organization',
        tags,
        body: createOrganizationBody,
        response: { 200: organizationSchema },
      },
    },
    async (request, reply) => {
      const context = commandContext(request);
      const { name, application = null } = request.body;
      const organization = { id: context.commandId, name, application, ownerUserId: null };
      return answer(request, reply, await commands.create(context, organization), summarizeUser);
    },
  );
}

function updateRoute(app: HttpApp, { commands, queries, summarizeUser }: OrganizationRouteParts): void {
  app.patch(
    '/api/v1/organizations/:id',
    {
      config: { scope: 'admin' },
      schema: {
        operationId: 'updateOrganization',
        summary: "Update an organization: one's own, or any with the scope `platform`",
        tags,
        params: organizationParams,
        body: updateOrganizationBody,
        response: { 200: organizationSchema },
      },
    },
    async (request, reply) => {
      const id = await targetOrganization(request.principal, request.params.id, queries);
      const { name, application, owner_id: ownerUserId } = request.body;
      if (ownerUserId && (await summarizeUser(id, ownerUserId)) === null) {
        throw invalid(['body', 'owner_id'], 'the organization has no such user', ownerUserId);
      }
      const context = commandContext(request);
      const result = await commands.update(context, id, { name, application, ownerUserId });
      return answer(request, reply, result, summarizeUser);
    },
  );
}

async function answer(
  request: FastifyRequest,
  reply: FastifyReply,
  result: OrganizationResult,
  summarizeUser: SummarizeUser,
): Promise<object> {
  if (!result.ok) throw errorOf(result.rejection);
  const { organization, revision } = result;
  // A position opens only for its own organization; whoever acts on another one reads what it wrote anyhow.
  if (organization.id === request.principal.organizationId) {
    setPosition(request, reply, { stream: streamName(ORGANIZATION, organization.id), revision });
  }
  void reply.header('etag', etagOf(organization.changedRevision));
  try {
    return await resourceOf(organization, summarizeUser);
  } catch (error) {
    throw faultAfterWrite(error);
  }
}

async function resourceOf(organization: Organization, summarizeUser: SummarizeUser): Promise<object> {
  const { id, ownerUserId } = organization;
  return organizationResource(organization, ownerUserId === null ? null : await summarizeUser(id, ownerUserId));
}

function errorOf(rejection: OrganizationRejection): Error {
  switch (rejection.reason) {
    case 'not_found':
      return notFound();
    default:
      return unreachable(rejection.reason);
  }
}
