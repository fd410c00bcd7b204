import { z } from 'zod';

import { interactionKeys } from '#libs/features/interactions/index.ts';
import type { InteractionPlace } from '#libs/features/interactions/index.ts';
import type { StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext, CommandRunner } from '#libs/platform/commands/index.ts';

import { decideDismiss, decideReact, decideReceipt, decideWithdraw } from './reaction.decider.ts';
import type { KnownInteraction, ReactionContext, ReactionPlace, ReactionRejection } from './reaction.decider.ts';
import type { ReactionEvent, Reactor } from './reaction.events.ts';
import { dismissalField, reactionField, reactionKeys, receiptField } from './reactions.keys.ts';
import { decodeStanding } from './reactions.marks.ts';

/** What runs the commands of channels; reactions see the channel, too. */
export type ReactionRunner = CommandRunner<ReactionContext, ReactionEvent>;

/** `revision` is that of the channel's stream. */
export type ReactionResult =
  | { readonly ok: true; readonly revision: StreamRevision }
  | { readonly ok: false; readonly rejection: ReactionRejection };

/**
 * The commands about what is added to interactions: reactions, read receipts, dismissals. Repeating one
 * yields no events. All of them look something up, so they need Redis, and throw the faults of
 * `CommandHandler.handle`.
 */
export class ReactionCommands {
  readonly #runner: ReactionRunner;

  constructor(runner: ReactionRunner) {
    this.#runner = runner;
  }

  /** @param reactor an agent without a name gets the one that it has in the channel */
  react(context: CommandContext, place: InteractionPlace, reactor: Reactor, emoji: string): Promise<ReactionResult> {
    const field = reactionField(place.sequence, reactor, emoji);
    return this.#decide(context, place, field, (state, target, known) =>
      decideReact(state, target, { emoji, reactor, standing: known === null ? null : decodeStanding(known) }),
    );
  }

  withdraw(
    context: CommandContext,
    place: InteractionPlace,
    reactor: Omit<Reactor, 'name'>,
    emoji: string,
  ): Promise<ReactionResult> {
    const field = reactionField(place.sequence, reactor, emoji);
    return this.#decide(context, place, field, (state, target, known) =>
      decideWithdraw(state, target, { emoji, reactor, standing: known === null ? null : decodeStanding(known) }),
    );
  }

  recordReceipt(context: CommandContext, place: InteractionPlace, agentId: EntityId): Promise<ReactionResult> {
    return this.#decide(context, place, receiptField(place.sequence, agentId), (state, target, known) =>
      decideReceipt(state, target, { agentId, recorded: known !== null }),
    );
  }

  /** Dismisses the prompt that invites those whom the message mentions, for the user who sent it. */
  dismissMentionInvitePrompt(context: CommandContext, place: InteractionPlace): Promise<ReactionResult> {
    const userId = context.actor.type === 'user' ? context.actor.id : null;
    return this.#decide(context, place, dismissalField(place.sequence), (state, target, known) =>
      decideDismiss(state, target, { userId, dismissed: known !== null }),
    );
  }

  /** @param field what the decision needs to know besides the interaction */
  async #decide(
    context: CommandContext,
    { channelId, sequence }: InteractionPlace,
    field: string,
    decide: (state: ReactionContext, place: ReactionPlace, known: string | null) => ReturnType<typeof decideReact>,
  ): Promise<ReactionResult> {
    const { organizationId } = context;
    const document = { key: interactionKeys(organizationId, channelId).documents, field: String(sequence) };
    const { known, marks, withdrawn } = reactionKeys(organizationId, channelId);
    const own = { key: known, field };
    const counts = { marks: { key: marks, score: sequence }, withdrawn: { key: withdrawn, score: sequence } };
    const result = await this.#runner.handle(
      channelId,
      context,
      (state, { found, counted }) => {
        const stored = found(document);
        const interaction = stored === null ? null : knownInteraction(stored);
        const place = {
          organizationId,
          sequence,
          interaction,
          marks: counted(counts.marks),
          withdrawn: counted(counts.withdrawn),
        };
        return decide(state, place, found(own));
      },
      [document, own, counts.marks, counts.withdrawn],
    );
    return result.ok ? { ok: true, revision: result.revision } : result;
  }
}

/** What is looked at of a stored interaction. */
const stored = z.object({
  id: z.string(),
  interaction_id: z.string().nullable(),
  participant: z.looseObject({
    type: z.string(),
    user_id: z.string().optional(),
    agent_id: z.string().optional(),
  }),
});

function knownInteraction(json: string): KnownInteraction {
  const { id, interaction_id, participant } = stored.parse(JSON.parse(json));
  const turnId = interaction_id ?? id;
  switch (participant.type) {
    case 'authenticated_user': {
      const senderId = participant.user_id ?? null;
      return { target: { role: 'user', senderId }, senderUserId: senderId, turnId };
    }
    case 'non_authenticated_user':
    case 'maybe_user':
      return { target: { role: 'user', senderId: null }, senderUserId: null, turnId };
    default:
      // What no user says comes from the side that answers: agents, and the system.
      return { target: { role: 'assistant', senderId: participant.agent_id ?? null }, senderUserId: null, turnId };
  }
}
