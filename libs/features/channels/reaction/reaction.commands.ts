import type { ChannelState } from '../channel/channel.ts';
import { channelKeys } from '../channel.keys.ts';
import type { ChannelHandler } from '../stream.ts';
import { interactionId, type InteractionRef } from '../interaction/interaction.id.ts';
import { interactionOf } from '../interaction/reads/resource.ts';
import type { StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';

import {
  decideDismiss,
  decideReact,
  decideReceipt,
  decideWithdraw,
  type KnownInteraction,
  type ReactionRejection,
  type ReactionSubject,
  type Reactor,
} from './reaction.ts';
import { decodeCurrent, dismissalField, reactionField, receiptField } from './reaction.marks.ts';

/** `revision`: of the channel's stream. */
export type ReactionResult =
  | { readonly ok: true; readonly revision: StreamRevision }
  | { readonly ok: false; readonly rejection: ReactionRejection };

/**
 * The commands of reactions, read receipts and dismissals. Repeating one yields no events. They look up marks in the read
 * model and so need Redis, and throw the faults of `CommandHandler.handle`.
 */
export class ReactionCommands {
  readonly #handler: ChannelHandler;

  constructor(handler: ChannelHandler) {
    this.#handler = handler;
  }

  /** @param reactor an agent without a name gets its name in the channel */
  react(context: CommandContext, ref: InteractionRef, reactor: Reactor, emoji: string): Promise<ReactionResult> {
    const field = reactionField(ref.sequence, reactor, emoji);
    return this.#decide(context, ref, field, (channel, target, known) =>
      decideReact(channel, target, { emoji, reactor, current: known === null ? null : decodeCurrent(known) }),
    );
  }

  withdraw(
    context: CommandContext,
    ref: InteractionRef,
    reactor: Omit<Reactor, 'name'>,
    emoji: string,
  ): Promise<ReactionResult> {
    const field = reactionField(ref.sequence, reactor, emoji);
    return this.#decide(context, ref, field, (channel, target, known) =>
      decideWithdraw(channel, target, { emoji, reactor, current: known === null ? null : decodeCurrent(known) }),
    );
  }

  recordReceipt(context: CommandContext, ref: InteractionRef, agentId: EntityId): Promise<ReactionResult> {
    return this.#decide(context, ref, receiptField(ref.sequence, agentId), (channel, target, known) =>
      decideReceipt(channel, target, { agentId, recorded: known !== null }),
    );
  }

  /** Dismisses the mention-invite prompt of a message for its sender. */
  dismissMentionInvitePrompt(context: CommandContext, ref: InteractionRef): Promise<ReactionResult> {
    const userId = context.actor.type === 'user' ? context.actor.id : null;
    return this.#decide(context, ref, dismissalField(ref.sequence), (channel, target, known) =>
      decideDismiss(channel, target, { userId, dismissed: known !== null }),
    );
  }

  /** @param field look-up field of the mark that the decision depends on */
  async #decide(
    context: CommandContext,
    ref: InteractionRef,
    field: string,
    decide: (channel: ChannelState, subject: ReactionSubject, known: string | null) => ReturnType<typeof decideReact>,
  ): Promise<ReactionResult> {
    const { channelId, sequence } = ref;
    const { organizationId } = context;
    const { documents, knownMarks, marks, withdrawnMarks } = channelKeys(organizationId, channelId);
    const document = { key: documents, field: String(sequence) };
    const own = { key: knownMarks, field };
    const counts = { marks: { key: marks, score: sequence }, withdrawn: { key: withdrawnMarks, score: sequence } };
    const result = await this.#handler.handle(
      channelId,
      context,
      ({ channel }, { found, counted }) => {
        const stored = found(document);
        const interaction = stored === null ? null : knownInteraction(stored, ref);
        const subject = {
          organizationId,
          sequence,
          interaction,
          marks: counted(counts.marks),
          withdrawn: counted(counts.withdrawn),
        };
        return decide(channel, subject, found(own));
      },
      [document, own, counts.marks, counts.withdrawn],
    );
    return result.ok ? { ok: true, revision: result.revision } : result;
  }
}

function knownInteraction(json: string, ref: InteractionRef): KnownInteraction {
  const { participant, turnId: ofTurn } = interactionOf(json);
  const turnId = ofTurn ?? interactionId(ref);
  switch (participant.type) {
    case 'authenticated_user': {
      const senderId = participant.user_id;
      return { target: { role: 'user', senderId }, senderUserId: senderId, turnId };
    }
    case 'non_authenticated_user':
    case 'maybe_user':
      return { target: { role: 'user', senderId: null }, senderUserId: null, turnId };
    case 'agent':
      return { target: { role: 'assistant', senderId: participant.agent_id }, senderUserId: null, turnId };
    default:
      return { target: { role: 'assistant', senderId: null }, senderUserId: null, turnId };
  }
}
