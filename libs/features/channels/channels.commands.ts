import { accept } from '#libs/kernel/decider.ts';
import type { Decision } from '#libs/kernel/decider.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { StreamRevision } from '#libs/kernel/event.ts';
import type { CommandContext, CommandResult, CommandRunner } from '#libs/platform/commands/index.ts';

import {
  decideAddParticipant,
  decideArchive,
  decideCreate,
  decideRemoveParticipant,
  decideThread,
  decideUpdate,
} from './channel.decider.ts';
import type { Channel, ChannelChanges, ChannelRejection, ChannelState } from './channel.decider.ts';
import type { ChannelCreated, ChannelEvent, Participant } from './channel.events.ts';

/** A channel after a command, at the revision of its stream. */
export type ChannelResult =
  | { readonly ok: true; readonly channel: Channel; readonly revision: StreamRevision }
  | { readonly ok: false; readonly rejection: ChannelRejection };

/** Port: what commands of channels need of the interactions in them, whose feature depends on this one. */
export interface ChannelInteractions {
  /** Whether the log of the channel has the interaction. Throws `store_unavailable` faults. */
  wasPosted(channelId: EntityId, interactionId: EntityId): Promise<boolean>;
  /**
   * Runs a command that may archive the channel: before its events, those that end the open interactions are
   * appended. See `CommandHandler.handle` for guarantees and errors.
   */
  archive(
    channelId: EntityId,
    context: CommandContext,
    decide: (channel: ChannelState, hasOpenInteractions: boolean) => Decision<ChannelEvent, ChannelRejection>,
  ): Promise<CommandResult<ChannelState, ChannelEvent, ChannelRejection>>;
}

/** The commands of channels. All of them throw the faults of `CommandHandler.handle`. */
export class ChannelCommands {
  readonly #handler: CommandRunner<ChannelState, ChannelEvent>;
  readonly #interactions: ChannelInteractions;

  /** @param handler the one that runs all commands of channels in this process */
  constructor(handler: CommandRunner<ChannelState, ChannelEvent>, interactions: ChannelInteractions) {
    this.#handler = handler;
    this.#interactions = interactions;
  }

  /** What a thread refers to is looked up on the log: read models may lag behind. */
  async create(context: CommandContext, channel: ChannelCreated): Promise<ChannelResult> {
    const refusal = await this.#refusalOfThread(context, channel);
    // A command that is sent again may have created the thread before its parent was archived.
    if (refusal !== null && (await this.#current(context, channel.id)) === null) return refusal;
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
    return asChannel(
      await this.#interactions.archive(id, context, (state, hasOpen) => decideArchive(state, context, hasOpen)),
    );
  }

  async #refusalOfThread(
    context: CommandContext,
    { parentChannelId, originMessageId }: ChannelCreated,
  ): Promise<Extract<ChannelResult, { ok: false }> | null> {
    if (parentChannelId === null) return null;
    const decision = decideThread(await this.#current(context, parentChannelId), context);
    if (!decision.ok) return decision;
    if (originMessageId === null || (await this.#interactions.wasPosted(parentChannelId, originMessageId))) return null;
    return { ok: false, rejection: { reason: 'origin_not_found' } };
  }

  /** The channel at the true end of its stream: a command that does nothing is decided there. */
  async #current({ commandId, organizationId, actor, at }: CommandContext, id: EntityId): Promise<ChannelState> {
    // Without what marks a repeated command: it is not this channel's.
    const result = await this.#handler.handle(id, { commandId, organizationId, actor, at }, () => accept());
    return result.ok ? result.state : null;
  }
}

function asChannel(result: CommandResult<ChannelState, ChannelEvent, ChannelRejection>): ChannelResult {
  if (!result.ok) return result;
  // Every accepted command leaves a channel behind; only a decider that is wrong could get here.
  if (result.state === null) throw new TypeError('a command was accepted for a channel that does not exist');
  return { ok: true, channel: result.state, revision: result.revision };
}
