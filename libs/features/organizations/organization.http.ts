import { z } from 'zod';

import { faultAfterWrite } from '#libs/kernel/faults.ts';
import { EntityReplies } from '#libs/platform/entity/index.ts';
import {
  commandContext,
  etagOf,
  type HttpApp,
  idParam,
  idReference,
  invalid,
  notFound,
  openPage,
  pageMetaSchema,
  pageQuery,
  routesTagged,
  text,
} from '#libs/platform/http/index.ts';

import {
  organizationResource,
  type OrganizationResource,
  type Organizations,
  PLATFORM_SCOPE,
  type SummarizeUser,
} from './organization.read.ts';
import { decideUpdate, organizationApplication, type Organization } from './organization.ts';

const name = text({ min: 1, max: 256, description: 'Name of the organization' });

const organizationSchema = z
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

const organizationPageSchema = z
  .object({ items: z.array(organizationSchema), meta: pageMetaSchema })
  .meta({ id: 'OrganizationPage' });

const createOrganizationBody = z
  .object({ name, application: organizationApplication.nullish() })
  .meta({ id: 'OrganizationCreate' });

/** Absent fields stay as they are, null clears. */
const updateOrganizationBody = z
  .object({
    name: name.optional(),
    application: organizationApplication.nullish(),
    owner_id: idReference({ description: 'A user of the organization' }).nullish(),
  })
  .meta({ id: 'OrganizationUpdate' });

const params = z.object({ id: idParam('Id of the organization') });

export interface OrganizationRouteParts {
  readonly organizations: Organizations;
  readonly summarizeUser: SummarizeUser;
  /** Called after an organization has got another application. Never rejects. */
  readonly onApplicationChanged: () => Promise<void>;
}

const { reads, requiring } = routesTagged('organizations');
const admins = requiring('admin');
const operators = requiring(PLATFORM_SCOPE);
const response = { 200: organizationSchema };

export function organizationRoutes(app: HttpApp, parts: OrganizationRouteParts): void {
  readRoutes(app, parts);
  commandRoutes(app, parts);
}

function readRoutes(app: HttpApp, { organizations, summarizeUser }: OrganizationRouteParts): void {
  app.get(
    '/api/v1/organizations',
    operators({
      operationId: 'listOrganizations',
      summary: 'List all organizations, newest first',
      querystring: z.object(pageQuery),
      response: { 200: organizationPageSchema },
    }),
    async (request) => {
      const page = openPage(request, request.query, {});
      const found = await organizations.states(request.principal.organizationId, {}, page);
      const items = await Promise.all(
        found.states.map((organization) => withOwner(organizationResource(organization), summarizeUser)),
      );
      return { items, meta: page.meta(found) };
    },
  );

  app.get(
    '/api/v1/organizations/:id',
    reads({
      operationId: 'getOrganization',
      summary: 'Read your organization, or with the scope `platform` any organization',
      params,
      response,
    }),
    async (request, reply) => {
      const id = await organizations.target(request.principal, request.params.id);
      const organization = await organizations.find(id, id);
      if (organization === null) throw notFound();
      // No 304: the answer shows the owner's name, which changes without the revision.
      void reply.header('etag', etagOf(organization.changedRevision));
      return withOwner(organizationResource(organization), summarizeUser);
    },
  );
}

function commandRoutes(
  app: HttpApp,
  { organizations, summarizeUser, onApplicationChanged }: OrganizationRouteParts,
): void {
  const replies = new EntityReplies(organizations, {});

  app.post(
    '/api/v1/organizations',
    operators({
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
      return afterWrite(replies.accepted(request, reply, result), summarizeUser);
    },
  );

  app.patch(
    '/api/v1/organizations/:id',
    admins({
      operationId: 'updateOrganization',
      summary: 'Update your organization, or with the scope `platform` any organization',
      params,
      body: updateOrganizationBody,
      response,
    }),
    async (request, reply) => {
      const id = await organizations.target(request.principal, request.params.id);
      const { name, application, owner_id: ownerUserId } = request.body;
      if (ownerUserId && (await summarizeUser(id, ownerUserId)) === null) {
        throw invalid(['body', 'owner_id'], 'the organization has no such user', ownerUserId);
      }
      const changes = { name, application, ownerUserId };
      const result = await organizations.update(commandContext(request), id, (one) => decideUpdate(one, changes));
      if (application !== undefined && result.ok) await onApplicationChanged();
      return afterWrite(replies.accepted(request, reply, result), summarizeUser);
    },
  );
}

/** @throws Fault `outcome_unknown` where the owner cannot be read: the organization has changed */
async function afterWrite(organization: Organization, summarizeUser: SummarizeUser): Promise<OrganizationResource> {
  try {
    return await withOwner(organizationResource(organization), summarizeUser);
  } catch (error) {
    throw faultAfterWrite(error);
  }
}

async function withOwner(resource: OrganizationResource, summarizeUser: SummarizeUser): Promise<OrganizationResource> {
  const { id, owner_id: ownerId } = resource;
  return ownerId === null ? resource : { ...resource, owner: await summarizeUser(id, ownerId) };
}
