import { z } from 'zod';

import { declareReads, EntityReplies } from '#libs/platform/entity/index.ts';
import {
  commandContext,
  type HttpApp,
  idParam,
  idReference,
  invalid,
  routesTagged,
  text,
} from '#libs/platform/http/index.ts';

import {
  organizationEntity,
  organizationSchema,
  type Organizations,
  PLATFORM_SCOPE,
  type UserSummaries,
} from './organization.read.ts';
import { type Organization, organizationApplication } from './organization.ts';

const name = text({ min: 1, max: 256, description: 'Name of the organization' });

const createOrganizationBody = z
  .object({ name, application: organizationApplication.nullish() })
  .meta({ id: 'OrganizationCreate', examples: [{ name: 'Example Ltd' }] });

/** Absent fields stay as they are, null clears. */
const updateOrganizationBody = z
  .object({
    name: name.optional(),
    application: organizationApplication.nullish(),
    owner_id: idReference({ description: 'A user of the organization' }).nullish(),
  })
  .meta({ id: 'OrganizationUpdate', examples: [{ name: 'Example Inc' }] });

const params = z.object({ id: idParam('Id of the organization') });

const { requiring } = routesTagged('organizations');
const response = { 200: organizationSchema };

export function organizationRoutes(app: HttpApp, organizations: Organizations, users: UserSummaries): void {
  const replies = new EntityReplies(organizations, {}, { of: (shown) => withOwners(shown, users) });

  declareReads(app, replies, {
    path: '/api/v1/organizations',
    tag: 'organizations',
    params,
    schema: organizationSchema,
    organizationOf: ({ principal, params: { id } }) => organizations.target(principal, id),
    list: {
      operationId: 'listOrganizations',
      summary: 'List all organizations, newest first',
      scope: PLATFORM_SCOPE,
    },
    one: {
      operationId: 'getOrganization',
      summary: 'Read your organization, or with the scope `platform` any organization',
    },
  });

  app.post(
    '/api/v1/organizations',
    requiring(PLATFORM_SCOPE)({
      operationId: 'createOrganization',
      summary: 'Create an organization',
      body: createOrganizationBody,
      response,
    }),
    async (request, reply) => {
      const context = commandContext(request);
      const { name, application = null } = request.body;
      const data = { id: context.commandId, name, application, ownerUserId: null };
      const result = await organizations.create(context, data.id, { type: 'OrganizationCreated.v1', data });
      return replies.sendResult(request, reply, result);
    },
  );

  app.patch(
    '/api/v1/organizations/:id',
    requiring('admin')({
      operationId: 'updateOrganization',
      summary: 'Update your organization, or with the scope `platform` any organization',
      params,
      body: updateOrganizationBody,
      response,
    }),
    async (request, reply) => {
      const id = await organizations.target(request.principal, request.params.id);
      const { name, application, owner_id: ownerUserId } = request.body;
      if (ownerUserId && (await users.summary(id, ownerUserId)) === null) {
        throw invalid(['body', 'owner_id'], 'the organization has no such user', ownerUserId);
      }
      const changes = { name, application, ownerUserId };
      return replies.sendResult(request, reply, await organizations.change(commandContext(request), id, changes));
    },
  );
}

/** The name of the owner changes without the organization. */
function withOwners(shown: readonly Organization[], users: UserSummaries) {
  return Promise.all(
    shown.map(async (organization) => {
      const { id, ownerUserId } = organization;
      const owner = ownerUserId === null ? null : await users.summary(id, ownerUserId);
      return { ...organizationEntity.resource(organization), owner };
    }),
  );
}
