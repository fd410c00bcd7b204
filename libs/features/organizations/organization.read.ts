import type { FastifyRequest } from 'fastify';

import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { Entities, entity, type EntityCore } from '#libs/platform/entity/index.ts';
import { commandContext, idReference, notFound, type Principal } from '#libs/platform/http/index.ts';

import {
  ORGANIZATION,
  type Organization,
  organizationCodec,
  type OrganizationEvent,
  organizationFold,
  type OrganizationState,
} from './organization.ts';

/** The contract's summary of a user (section 2.3). */
export interface UserSummary {
  readonly display_name: string;
  readonly image_url: string;
}

/** The contract's summary of an organization (section 2.3). */
export interface OrganizationSummary {
  readonly id: EntityId;
  readonly name: string;
  readonly owner: UserSummary | null;
  readonly application: Organization['application'];
}

/** Port: users. Their feature depends on this one. */
export interface UserSummaries {
  /** Null if the organization has no such user. */
  summary(organizationId: EntityId, userId: EntityId): Promise<UserSummary | null>;
}

/** An organization as the API answers it: the contract's summary (section 2.3) and what administration needs. */
export interface OrganizationResource extends OrganizationSummary {
  /** Stored as null: the owner's name changes in another stream, so each reply looks it up. */
  readonly owner: UserSummary | null;
  readonly owner_id: EntityId | null;
  readonly created_at: string;
  readonly modified: string;
}

export function organizationResource(organization: Organization): OrganizationResource {
  return {
    id: organization.id,
    name: organization.name,
    owner: null,
    application: organization.application,
    owner_id: organization.ownerUserId,
    created_at: organization.createdAt,
    modified: organization.modified,
  };
}

export const organizationEntity = entity<OrganizationState, OrganizationEvent, {}>({
  category: ORGANIZATION,
  version: 1,
  codec: organizationCodec,
  fold: organizationFold,
  resource: organizationResource,
  facets: () => ({}),
  isTenant: true,
});

/** The scope of those who run the installation: it reaches every organization. */
export const PLATFORM_SCOPE = 'platform';

/** Parameter of administrative requests: another organization than the caller's. */
export const organizationReference = idReference({
  description: 'An organization other than that of the API key; requires the scope `platform`',
}).optional();

export class Organizations extends Entities<OrganizationState, OrganizationEvent, {}> {
  readonly #users: UserSummaries;

  constructor(core: EntityCore, users: UserSummaries) {
    super(organizationEntity, core);
    this.#users = users;
  }

  /** Null for an organization that does not exist. */
  async summary(id: EntityId): Promise<OrganizationSummary | null> {
    const organization = await this.find(id, id);
    if (organization === null) return null;
    const { name, application, ownerUserId } = organization;
    return { id, name, owner: ownerUserId === null ? null : await this.#users.summary(id, ownerUserId), application };
  }

  /**
   * The organization that an administrative request acts on: the caller's own, or the one that the request names.
   *
   * @throws HttpError 404 for another organization unless the key has the scope `platform`, and for an organization
   * that does not exist: the same bytes, so that the answer does not reveal which it was
   */
  async target(principal: Principal, requested: EntityId | undefined): Promise<EntityId> {
    if (requested === undefined || requested === principal.organizationId) return principal.organizationId;
    if (!principal.scopes.has(PLATFORM_SCOPE)) throw notFound();
    if ((await this.find(requested, requested)) === null) throw notFound();
    return requested;
  }

  /** The context of a command on the organization that an administrative request acts on. @throws as {@link target} */
  async contextFor(request: FastifyRequest, requested: EntityId | undefined): Promise<CommandContext> {
    const organizationId = await this.target(request.principal, requested);
    return { ...commandContext(request), organizationId };
  }
}
