import { z } from 'zod';

import { interactionKeys } from '../interaction/reads/interaction.keys.ts';
import type { InteractionRef } from '../interaction/interaction.id.ts';
import { type Caller, UNAUTHENTICATED } from '#libs/kernel/acting.ts';
import { unreachable } from '#libs/kernel/decider.ts';
import type { StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext, CommandRunner } from '#libs/platform/commands/index.ts';
import { conflict, forbidden, invalid, notFound, type Principal, requireMayActAs } from '#libs/platform/http/index.ts';

import {
  decideDismiss,
  decideReact,
  decideReceipt,
  decideWithdraw,
  type KnownInteraction,
  MAX_MARKS,
  MAX_WITHDRAWN,
  type ReactionContext,
  type ReactionEvent,
  type ReactionRejection,
  type ReactionSubject,
  type Reactor,
} from './reaction.ts';
import { decodeCurrent, dismissalField, reactionField, reactionKeys, receiptField } from './reaction.marks.ts';

/** Runs the commands of channels, whose streams also contain the reactions. */
export type ReactionRunner = CommandRunner<ReactionContext, ReactionEvent>;

/** `revision` is that of the channel's stream. */
export type ReactionResult =
  | { readonly ok: true; readonly revision: StreamRevision }
  | { readonly ok: false; readonly rejection: ReactionRejection };

/**
 * The commands of reactions, read receipts and dismissals. Repeating one yields no events. They look up marks in the read
 * model and so need Redis, and throw the faults of `CommandHandler.handle`.
 */
export class ReactionCommands {
  readonly #runner: ReactionRunner;

  constructor(runner: ReactionRunner) {
    this.#runner = runner;
  }

  /** @param reactor an agent without a name gets its name in the channel */
  react(context: CommandContext, ref: InteractionRef, reactor: Reactor, emoji: string): Promise<ReactionResult> {
    const field = reactionField(ref.sequence, reactor, emoji);
    return this.#decide(context, ref, field, (state, target, known) =>
      decideReact(state, target, { emoji, reactor, current: known === null ? null : decodeCurrent(known) }),
    );
  }

  withdraw(
    context: CommandContext,
    ref: InteractionRef,
    reactor: Omit<Reactor, 'name'>,
    emoji: string,
  ): Promise<ReactionResult> {
    const field = reactionField(ref.sequence, reactor, emoji);
    return this.#decide(context, ref, field, (state, target, known) =>
      decideWithdraw(state, target, { emoji, reactor, current: known === null ? null : decodeCurrent(known) }),
    );
  }

  recordReceipt(context: CommandContext, ref: InteractionRef, agentId: EntityId): Promise<ReactionResult> {
    return this.#decide(context, ref, receiptField(ref.sequence, agentId), (state, target, known) =>
      decideReceipt(state, target, { agentId, recorded: known !== null }),
    );
  }

  /** Dismisses the mention-invite prompt of a message for its sender. */
  dismissMentionInvitePrompt(context: CommandContext, ref: InteractionRef): Promise<ReactionResult> {
    const userId = context.actor.type === 'user' ? context.actor.id : null;
    return this.#decide(context, ref, dismissalField(ref.sequence), (state, target, known) =>
      decideDismiss(state, target, { userId, dismissed: known !== null }),
    );
  }

  /** @param field look-up field of the mark that the decision depends on */
  async #decide(
    context: CommandContext,
    { channelId, sequence }: InteractionRef,
    field: string,
    decide: (state: ReactionContext, subject: ReactionSubject, known: string | null) => ReturnType<typeof decideReact>,
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
        const subject = {
          organizationId,
          sequence,
          interaction,
          marks: counted(counts.marks),
          withdrawn: counted(counts.withdrawn),
        };
        return decide(state, subject, found(own));
      },
      [document, own, counts.marks, counts.withdrawn],
    );
    return result.ok ? { ok: true, revision: result.revision } : result;
  }
}

/** The members of a stored interaction that decisions depend on. */
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
      // Agents and the system.
      return { target: { role: 'assistant', senderId: participant.agent_id ?? null }, senderUserId: null, turnId };
  }
}

export function reactionError({ reason }: ReactionRejection): Error {
  switch (reason) {
    case 'not_found':
      return notFound();
    case 'archived':
      return conflict('The channel is archived', 'archived');
    case 'too_many_reactions':
      return conflict(
        `An interaction takes ${MAX_MARKS} reactions and read receipts, and ${MAX_WITHDRAWN} that are taken back`,
        'too_many_reactions',
      );
    case 'not_a_user_message':
      return conflict('Read receipts belong to messages of users', 'not_a_user_message');
    case 'not_the_sender':
      return forbidden('Only the user who sent the message can dismiss its prompt', 'not_the_sender');
    default:
      return unreachable(reason);
  }
}

export interface ReactorNames {
  /** The display name of a user; null if the organization has no such user. */
  nameOf(organizationId: EntityId, userId: EntityId): Promise<string | null>;
}

/**
 * The user or agent that reacts, with its display name.
 *
 * @throws HttpError 403 for a user without the scope `impersonate` that reacts as an agent
 * @throws ValidationFailure 422 for a service without an `agent_id`
 */
export async function namedReactor(
  principal: Caller & Pick<Principal, 'organizationId'>,
  input: { readonly agent_id?: EntityId | null | undefined; readonly agent_name?: string | null | undefined },
  users: ReactorNames,
): Promise<Reactor> {
  const { type, id } = reactorOf(principal, 'body', input.agent_id);
  const name = type === 'agent' ? (input.agent_name ?? null) : await users.nameOf(principal.organizationId, id);
  return { type, id, name: name || null };
}

/** As {@link namedReactor}, without the name. */
export function reactorOf(
  principal: Caller,
  where: 'body' | 'query',
  agentId: EntityId | null | undefined,
): Omit<Reactor, 'name'> {
  if (typeof agentId === 'string') {
    requireMayActAs(principal, UNAUTHENTICATED);
    return { type: 'agent', id: agentId };
  }
  if (principal.principalType === 'user') return { type: 'user', id: principal.principalId };
  throw invalid([where, 'agent_id'], 'a service reacts for an agent only', agentId ?? null);
}
