import type { ChannelState } from '#libs/features/channels/index.ts';
import type { Decision } from '#libs/kernel/decider.ts';
import { accept, refuse } from '#libs/kernel/decider.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

import type { ReactionEvent, ReactionTarget, Reactor } from './reaction.events.ts';

/**
 * Reactions and receipts that an interaction may have at a time, because every reader of it gets all of them; and
 * reactions to it that may have been taken back, because readers of the past look at those, too.
 */
export const MAX_MARKS = 1_000;
export const MAX_WITHDRAWN = 10_000;

/** The part of the channel's state that decisions about reactions are made on; nothing is held of their own. */
export interface ReactionContext {
  readonly channel: ChannelState;
}

export type ReactionRejection =
  | { readonly reason: 'not_found' }
  | { readonly reason: 'archived' }
  | { readonly reason: 'too_many_reactions' }
  | { readonly reason: 'not_a_user_message' }
  | { readonly reason: 'not_the_sender' };

type ReactionDecision = Decision<ReactionEvent, ReactionRejection>;

/** What was found out about an interaction that is reacted to. */
export interface KnownInteraction {
  readonly target: ReactionTarget;
  /** The user who sent it; null for all other senders. */
  readonly senderUserId: EntityId | null;
  readonly turnId: string;
}

/** Whose interaction a command expects to find, and what was found there. */
export interface ReactionPlace {
  readonly organizationId: EntityId;
  readonly sequence: ChannelSequence;
  readonly interaction: KnownInteraction | null;
  /** What it has of reactions and receipts. */
  readonly marks: number;
  /** How many reactions to it were taken back. */
  readonly withdrawn: number;
}

/** A reaction that stands: since which event, and under which name. */
export interface StandingReaction {
  readonly addedAt: ChannelSequence;
  readonly name: string | null;
}

/** Someone who reacts; agents without a name get the one that they have in the channel. */
export function decideReact(
  { channel }: ReactionContext,
  place: ReactionPlace,
  { emoji, reactor, standing }: { emoji: string; reactor: Reactor; standing: StandingReaction | null },
): ReactionDecision {
  const found = find(channel, place);
  if (!found.ok) return found;
  if (standing !== null) return accept();
  if (place.marks >= MAX_MARKS || place.withdrawn >= MAX_WITHDRAWN) return refuse({ reason: 'too_many_reactions' });
  const name = reactor.name ?? nameInChannel(found.channel, reactor);
  const { target } = found.interaction;
  const data = { sequence: place.sequence, emoji, reactor: { ...reactor, name }, target };
  return accept({ type: 'ReactionAdded.v1', data });
}

export function decideWithdraw(
  { channel }: ReactionContext,
  place: ReactionPlace,
  { emoji, reactor, standing }: { emoji: string; reactor: Omit<Reactor, 'name'>; standing: StandingReaction | null },
): ReactionDecision {
  const found = find(channel, place);
  if (!found.ok) return found;
  if (standing === null) return accept();
  const { addedAt, name } = standing;
  const { target } = found.interaction;
  const data = { sequence: place.sequence, emoji, reactor: { ...reactor, name }, target, addedAt };
  return accept({ type: 'ReactionRemoved.v1', data });
}

/** An agent has read a message of a user; once is enough. */
export function decideReceipt(
  { channel }: ReactionContext,
  place: ReactionPlace,
  { agentId, recorded }: { readonly agentId: string; readonly recorded: boolean },
): ReactionDecision {
  const found = find(channel, place);
  if (!found.ok) return found;
  const { target, turnId } = found.interaction;
  if (target.role !== 'user') return refuse({ reason: 'not_a_user_message' });
  if (recorded) return accept();
  if (place.marks >= MAX_MARKS) return refuse({ reason: 'too_many_reactions' });
  return accept({ type: 'ReadReceiptRecorded.v1', data: { sequence: place.sequence, agentId, turnId } });
}

/** Only who has sent the message is shown the prompt, so nobody else dismisses it. */
export function decideDismiss(
  { channel }: ReactionContext,
  place: ReactionPlace,
  { userId, dismissed }: { readonly userId: EntityId | null; readonly dismissed: boolean },
): ReactionDecision {
  const found = find(channel, place);
  if (!found.ok) return found;
  if (userId === null || found.interaction.senderUserId !== userId) return refuse({ reason: 'not_the_sender' });
  if (dismissed) return accept();
  return accept({ type: 'MentionInvitePromptDismissed.v1', data: { sequence: place.sequence, userId } });
}

type Found =
  | { readonly ok: true; readonly channel: NonNullable<ChannelState>; readonly interaction: KnownInteraction }
  | Extract<ReactionDecision, { ok: false }>;

/** Another organization's interaction is refused just as one that does not exist. */
function find(channel: ChannelState, { organizationId, interaction }: ReactionPlace): Found {
  if (channel === null || channel.organizationId !== organizationId || interaction === null) {
    return refuse({ reason: 'not_found' });
  }
  if (channel.archivedAt !== null) return refuse({ reason: 'archived' });
  return { ok: true, channel, interaction };
}

function nameInChannel({ participants }: NonNullable<ChannelState>, { type, id }: Reactor): string | null {
  if (type !== 'agent') return null;
  for (const one of participants) if (one.type === 'agent' && one.agentId === id) return one.name;
  return null;
}
