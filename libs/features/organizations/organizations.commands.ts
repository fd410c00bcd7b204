import type { StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { CommandHandler, withPreconditions } from '#libs/platform/commands/index.ts';
import type {
  CommandContext,
  CommandHandlerOptions,
  CommandResult,
  CommandRunner,
  CommandStores,
} from '#libs/platform/commands/index.ts';

import { decideCreate, decideUpdate } from './organization.decider.ts';
import type {
  Organization,
  OrganizationChanges,
  OrganizationRejection,
  OrganizationState,
} from './organization.decider.ts';
import type { OrganizationCreated, OrganizationEvent } from './organization.events.ts';
import { organizationProjection } from './organizations.projection.ts';

/** An organization after a command, at the revision of its stream. */
export type OrganizationResult =
  | { readonly ok: true; readonly organization: Organization; readonly revision: StreamRevision }
  | { readonly ok: false; readonly rejection: OrganizationRejection };

/**
 * The commands of organizations. All of them throw the faults of `CommandHandler.handle`. The context names
 * who acts; its organization may be another one than the one that is acted on.
 */
export class OrganizationCommands {
  readonly #handler: CommandRunner<OrganizationState, OrganizationEvent>;

  constructor(stores: CommandStores, options?: CommandHandlerOptions) {
    this.#handler = withPreconditions(
      new CommandHandler(organizationProjection, stores, options),
      (organization) => organization?.changedRevision ?? null,
    );
  }

  async create(context: CommandContext, organization: OrganizationCreated): Promise<OrganizationResult> {
    const { id } = organization;
    return asOrganization(
      await this.#handler.handle(id, within(id, context), (state) => decideCreate(state, organization)),
    );
  }

  async update(context: CommandContext, id: EntityId, changes: OrganizationChanges): Promise<OrganizationResult> {
    return asOrganization(await this.#handler.handle(id, within(id, context), (state) => decideUpdate(state, changes)));
  }
}

/** The events of an organization are its own, whoever caused them: a rebuild finds it by its own id. */
function within(id: EntityId, context: CommandContext): CommandContext {
  return { ...context, organizationId: id };
}

function asOrganization(
  result: CommandResult<OrganizationState, OrganizationEvent, OrganizationRejection>,
): OrganizationResult {
  if (!result.ok) return result;
  // Every accepted command leaves an organization behind; only a decider that is wrong could get here.
  if (result.state === null) throw new TypeError('a command was accepted for an organization that does not exist');
  return { ok: true, organization: result.state, revision: result.revision };
}
