import type { FastifyRequest } from 'fastify';
import { z } from 'zod';

import { shownFields } from '#libs/kernel/fields.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { Entities, entity, type EntityResult, type NotFound } from '#libs/platform/entity/index.ts';
import { commandContext, idReference, notFound, type Principal, shownTime } from '#libs/platform/http/index.ts';
import { type Announcements, FreshReads } from '#libs/platform/announcements/index.ts';
import type { Core } from '#libs/platform/runtime/index.ts';
import { Fault } from '#libs/kernel/faults.ts';

import {
  decideUpdate,
  type Organization,
  ORGANIZATION,
  organizationApplication,
  type OrganizationChanges,
  organizationCodec,
  type OrganizationEvent,
  organizationFold,
  type OrganizationState,
} from './organization.ts';

/** The contract's summary of a user (section 2.3). */
const userSummary = z
  .object({ display_name: z.string().default(''), image_url: z.string() })
  .meta({ id: 'UserSummary', description: 'Summary of a user' });

export type UserSummary = z.output<typeof userSummary>;

/** The contract's summary of an organization (section 2.3). */
export const organizationSummary = z
  .object({
    id: z.string(),
    name: z.string(),
    owner: userSummary.nullable(),
    application: organizationApplication.nullable(),
  })
  .meta({ id: 'OrganizationSummary' });

export type OrganizationSummary = z.output<typeof organizationSummary>;

/** Port: users. Their feature depends on this one. */
export interface UserSummaries {
  /** Null if the organization has no such user. */
  summary(organizationId: EntityId, userId: EntityId): Promise<UserSummary | null>;
}

/** The contract's summary (section 2.3), and what administration needs. */
const organizationFields = shownFields<Organization>()({
  id: z.string(),
  name: z.string(),
  // The owner's name changes in another stream, so each reply looks it up.
  owner: [z.object({ display_name: z.string(), image_url: z.string() }).nullable(), () => null],
  application: organizationApplication.nullable(),
  owner_id: [z.string().nullable().describe('Id of the user who owns the organization'), (one) => one.ownerUserId],
  created_at: shownTime(),
  modified: shownTime(),
});
export const organizationSchema = z.object(organizationFields.shape).meta({ id: 'Organization' });

export const organizationEntity = entity<OrganizationState, OrganizationEvent, {}>({
  category: ORGANIZATION,
  version: 1,
  codec: organizationCodec,
  fold: organizationFold,
  resource: organizationFields.resource,
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
  readonly #announcements: Announcements;
  readonly #applications: Applications;

  constructor(core: Core, users: UserSummaries) {
    super(organizationEntity, core);
    this.#users = users;
    this.#announcements = core.announcements;
    this.#applications = new Applications(this, core.announcements);
  }

  async change(
    context: CommandContext,
    id: EntityId,
    changes: OrganizationChanges,
  ): Promise<EntityResult<Organization, NotFound>> {
    const result = await this.update(context, id, (organization) => decideUpdate(organization, changes));
    if (result.ok && changes.application !== undefined)
      await this.#announcements.announce({ kind: 'organization-changed' });
    return result;
  }

  /** See `Applications.of`. */
  application(id: EntityId): Promise<string | null> {
    return this.#applications.of(id);
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

const MAX_ORGANIZATIONS = 10_000;

/**
 * The applications that organizations belong to, which every interaction names. Kept in memory, because a post by one
 * writer would wait for Redis only to read one.
 *
 * Guarantees: those of `FreshReads`, except that the last known application counts while Redis is away.
 */
export class Applications {
  readonly #reads: FreshReads<Organization>;

  /** @param clock monotonic, in milliseconds */
  constructor(
    organizations: Pick<Organizations, 'find'>,
    announcements: Pick<Announcements, 'areReceivedSince' | 'listen'>,
    clock?: () => number,
  ) {
    this.#reads = new FreshReads({
      read: (id) => organizations.find(id, id),
      announcements,
      // Changes of organizations are rare: a change of one makes all be read again.
      onChange({ kind }, reads) {
        if (kind === 'organization-changed') reads.outdateAll();
      },
      max: MAX_ORGANIZATIONS,
      clock,
    });
  }

  /** @throws `Fault` `store_unavailable` if it was never read */
  async of(id: EntityId): Promise<string | null> {
    try {
      const reading = this.#reads.current(id) ?? (await this.#reads.read(id));
      return reading?.value.application ?? null;
    } catch (error) {
      const known = this.#reads.known(id);
      if (known === undefined || !(error instanceof Fault)) throw error;
      return known.value.application;
    }
  }
}
