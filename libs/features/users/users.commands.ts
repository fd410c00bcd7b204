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

import { decideCreate, decideDeactivate, decideUpdate } from './user.decider.ts';
import type { User, UserChanges, UserRejection, UserState } from './user.decider.ts';
import type { UserCreated, UserEvent } from './user.events.ts';
import { userProjection } from './users.projection.ts';

/** A user after a command, at the revision of its stream. */
export type UserResult =
  | { readonly ok: true; readonly user: User; readonly revision: StreamRevision }
  | { readonly ok: false; readonly rejection: UserRejection };

export interface UserCommandsOptions extends CommandHandlerOptions {
  /** Told after each deactivation, before it is answered: the user's keys are to stop working everywhere. */
  readonly onDeactivated?: (organizationId: EntityId, userId: EntityId) => Promise<void>;
}

/** The commands of users. All of them throw the faults of `CommandHandler.handle`. */
export class UserCommands {
  readonly #handler: CommandRunner<UserState, UserEvent>;
  readonly #onDeactivated: UserCommandsOptions['onDeactivated'];

  constructor(stores: CommandStores, options: UserCommandsOptions = {}) {
    this.#handler = withPreconditions(
      new CommandHandler(userProjection, stores, options),
      (user) => user?.changedRevision ?? null,
    );
    this.#onDeactivated = options.onDeactivated;
  }

  async create(context: CommandContext, user: UserCreated): Promise<UserResult> {
    return asUser(await this.#handler.handle(user.id, context, (state) => decideCreate(state, user)));
  }

  async update(context: CommandContext, id: EntityId, changes: UserChanges): Promise<UserResult> {
    return asUser(await this.#handler.handle(id, context, (state) => decideUpdate(state, context, changes)));
  }

  async deactivate(context: CommandContext, id: EntityId): Promise<UserResult> {
    const result = asUser(await this.#handler.handle(id, context, (state) => decideDeactivate(state, context)));
    if (result.ok) await this.#onDeactivated?.(context.organizationId, id);
    return result;
  }
}

function asUser(result: CommandResult<UserState, UserEvent, UserRejection>): UserResult {
  if (!result.ok) return result;
  // Every accepted command leaves a user behind; only a decider that is wrong could get here.
  if (result.state === null) throw new TypeError('a command was accepted for a user that does not exist');
  return { ok: true, user: result.state, revision: result.revision };
}
