import type { FastifyRequest } from 'fastify';

import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { commandContext, notFound } from '#libs/platform/http/index.ts';
import type { Principal } from '#libs/platform/http/index.ts';

import type { OrganizationQueries } from './organizations.queries.ts';

/** The scope of those who run the installation: it reaches every organization. */
export const PLATFORM_SCOPE = 'platform';

/**
 * The organization that an administrative request acts on: the caller's own, or the one that it names.
 *
 * @throws HttpError 404 for another organization unless the key has the scope `platform`, and for one that
 * does not exist: the same bytes, so that nobody can find out which it was
 */
export async function targetOrganization(
  principal: Principal,
  requested: EntityId | undefined,
  organizations: OrganizationQueries,
): Promise<EntityId> {
  if (requested === undefined || requested === principal.organizationId) return principal.organizationId;
  if (!principal.scopes.has(PLATFORM_SCOPE)) throw notFound();
  if ((await organizations.organization(requested)) === null) throw notFound();
  return requested;
}

/** The context of a command on the organization that an administrative request acts on. @throws as above */
export async function targetContext(
  request: FastifyRequest,
  requested: EntityId | undefined,
  organizations: OrganizationQueries,
): Promise<CommandContext> {
  const organizationId = await targetOrganization(request.principal, requested, organizations);
  return { ...commandContext(request), organizationId };
}
