import type { EntityId } from '#libs/kernel/ids.ts';
import type { StreamRevision } from '#libs/kernel/event.ts';
import type { CommandContext, CommandResult, CommandRunner } from '#libs/platform/commands/index.ts';

import {
  decideAddParticipant,
  decideArchive,
  decideCreate,
  decideRemoveParticipant,
  decideUpdate,
} from './channel.decider.ts';
import type { Channel, ChannelChanges, ChannelRejection, ChannelState } from './channel.decider.ts';
import type { ChannelCreated, ChannelEvent, Participant } from './channel.events.ts';

/** A channel after a command, at the revision of its stream. */
export type ChannelResult =
  | { readonly ok: true; readonly channel: Channel; readonly revision: StreamRevision }
  | { readonly ok: false; readonly rejection: ChannelRejection };

/** The commands of channels. All of them throw the faults of `CommandHandler.handle`. */
export class ChannelCommands {
  readonly #handler: CommandRunner<ChannelState, ChannelEvent>;

  /** @param handler the one that runs all commands of channels in this process */
  constructor(handler: CommandRunner<ChannelState, ChannelEvent>) {
    this.#handler = handler;
  }

  async create(context: CommandContext, channel: ChannelCreated): Promise<ChannelResult> {
    return asChannel(await this.#handler.handle(channel.id, context, (state) => decideCreate(state, channel)));
  }

  async update(context: CommandContext, id: EntityId, changes: ChannelChanges): Promise<ChannelResult> {
    return asChannel(await this.#handler.handle(id, context, (state) => decideUpdate(state, context, changes)));
  }

  async addParticipant(context: CommandContext, id: EntityId, participant: Participant): Promise<ChannelResult> {
    return asChannel(
      await this.#handler.handle(id, context, (state) => decideAddParticipant(state, context, participant)),
    );
  }

  async removeParticipant(context: CommandContext, id: EntityId, participantId: EntityId): Promise<ChannelResult> {
    return asChannel(
      await this.#handler.handle(id, context, (state) => decideRemoveParticipant(state, context, participantId)),
    );
  }

  async archive(context: CommandContext, id: EntityId): Promise<ChannelResult> {
    return asChannel(await this.#handler.handle(id, context, (state) => decideArchive(state, context)));
  }
}

function asChannel(result: CommandResult<ChannelState, ChannelEvent, ChannelRejection>): ChannelResult {
  if (!result.ok) return result;
  // Every accepted command leaves a channel behind; only a decider that is wrong could get here.
  if (result.state === null) throw new TypeError('a command was accepted for a channel that does not exist');
  return { ok: true, channel: result.state, revision: result.revision };
}
