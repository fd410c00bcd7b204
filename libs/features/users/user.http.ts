import { z } from 'zod';

import { organizationReference, type Organizations } from '#libs/features/organizations/index.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { declareReads, EntityReplies, type RejectionErrors } from '#libs/platform/entity/index.ts';
import {
  conflict,
  type HttpApp,
  httpUrl,
  invalid,
  idParam,
  queryBoolean,
  routesTagged,
  text,
} from '#libs/platform/http/index.ts';
import { inCamelCase } from '#libs/kernel/fields.ts';

import { type Users, userSchema } from './user.read.ts';
import { decideUpdate, type UserCreated, userIdOf, type UserRejection } from './user.ts';

const displayName = text({ max: 256, description: 'Display name, which other users see' });
/** Loose on purpose: only mail can tell whether an address receives mail. */
const email = text({ max: 320, pattern: /^[^\s@]+@[^\s@]+$/, description: 'E-mail address' });

const createUserBody = z
  .object({
    display_name: displayName.default(''),
    email: email.nullish(),
    image_url: httpUrl().nullish(),
    external_id: text({
      min: 1,
      max: 255,
      description:
        '`sub` of the tokens of the user; with `issuer`. A user that exists stays as it is and is the answer',
    }).nullish(),
    issuer: text({ min: 1, max: 512, description: '`iss` of the tokens of the user; with `external_id`' }).nullish(),
    organization_id: organizationReference,
  })
  .meta({ id: 'UserCreate', examples: [{ display_name: 'Ada', email: 'ada@example.org', external_id: 'ada' }] });

/** Absent fields stay as they are, null clears. */
const updateUserBody = z
  .object({ display_name: displayName.optional(), email: email.nullish(), image_url: httpUrl().nullish() })
  .meta({ id: 'UserUpdate', examples: [{ display_name: 'Ada L.' }] });

const params = z.object({ id: idParam('Id of the user') });
const ofOrganization = z.object({ organization_id: organizationReference });

const errors: RejectionErrors<UserRejection> = {
  deactivated: () => conflict('The user is deactivated', 'deactivated'),
};

const admins = routesTagged('users').requiring('admin');
const ofOne = { params, querystring: ofOrganization };
const response = { 200: userSchema };

export function userRoutes(app: HttpApp, users: Users, organizations: Organizations): void {
  const replies = new EntityReplies(users, errors);

  declareReads(app, replies, {
    path: '/api/v1/users',
    tag: 'users',
    params,
    schema: userSchema,
    query: ofOrganization.shape,
    organizationOf: ({ principal, query }) => organizations.target(principal, query.organization_id),
    list: {
      operationId: 'listUsers',
      summary: 'List users, newest first',
      filters: {
        is_active: queryBoolean({ description: 'Only active users, or only deactivated ones' }).optional(),
        external_id: text({ min: 1, max: 255, description: 'Only users whose tokens have this `sub`' }).optional(),
      },
      facets: ({ is_active, external_id }) => ({ is_active, external_id }),
    },
    one: { operationId: 'getUser', summary: 'Read a user' },
  });

  app.post(
    '/api/v1/users',
    admins({ operationId: 'createUser', summary: 'Create a user', body: createUserBody, response }),
    async (request, reply) => {
      const { display_name: displayName, email = null, image_url: imageUrl = null } = request.body;
      const context = await organizations.contextFor(request, request.body.organization_id);
      const user = { ...identityOf(request.body, context), displayName, email, imageUrl };
      const result = await users.create(context, user.id, { type: 'UserCreated.v1', data: user });
      return replies.sendResult(request, reply, result);
    },
  );

  app.patch(
    '/api/v1/users/:id',
    admins({ ...ofOne, operationId: 'updateUser', summary: 'Update a user', body: updateUserBody, response }),
    async (request, reply) => {
      const context = await organizations.contextFor(request, request.query.organization_id);
      const changes = inCamelCase(request.body);
      const result = await users.update(context, request.params.id, (user) => decideUpdate(user, changes));
      return replies.sendResult(request, reply, result);
    },
  );

  app.delete(
    '/api/v1/users/:id',
    admins({
      ...ofOne,
      operationId: 'deactivateUser',
      summary: 'Deactivate a user permanently; its API keys stop working immediately',
      response,
    }),
    async (request, reply) => {
      const context = await organizations.contextFor(request, request.query.organization_id);
      return replies.sendResult(request, reply, await users.deactivate(context, request.params.id));
    },
  );
}

/**
 * The id of a new user, which follows from the subject of its tokens if there are any: so the backend of an application can
 * name its users before they come.
 *
 * @throws ValidationFailure 422
 */
function identityOf(
  body: z.output<typeof createUserBody>,
  { commandId, organizationId }: CommandContext,
): Pick<UserCreated, 'id' | 'subject'> {
  const { external_id: id = null, issuer = null } = body;
  if (id === null && issuer === null) return { id: commandId };
  if (id === null) throw invalid(['body', 'external_id'], 'Field required', body, 'missing');
  if (issuer === null) throw invalid(['body', 'issuer'], 'Field required', body, 'missing');
  return { id: userIdOf({ organizationId, issuer, subject: id }), subject: { issuer, id } };
}
