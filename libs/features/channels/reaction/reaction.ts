/*
 * WARNING: the names and shapes of events are the storage format: the log keeps them forever. Never change one in place.
 * A new version is a new type, and the old one gets an upcaster.
 *
 * Reactions, read receipts and dismissals are events of the stream of their interaction's channel. `sequence` is that of
 * the interaction. Names are those at the time of the reaction.
 */
import { z } from 'zod';

import type { ChannelState } from '../channel/channel.ts';
import { accept, refuse, type Decision } from '#libs/kernel/decider.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';

const sequence = z.int().positive();

const reaction = z.object({
  sequence,
  emoji: z.string(),
  reactor: z.object({ type: z.enum(['user', 'agent']), id: z.string(), name: z.string().nullable() }),
  /** The sender of the interaction; `senderId` is null for senders without an id. */
  target: z.object({ role: z.enum(['user', 'assistant']), senderId: z.string().nullable() }),
});

export const reactionCodec = defineEvents({
  'ReactionAdded.v1': reaction,
  /** The removed reaction, and the sequence of the event that added it. */
  'ReactionRemoved.v1': reaction.extend({ addedAt: sequence }),
  /** `turnId` is the turn of the interaction. */
  'ReadReceiptRecorded.v1': z.object({ sequence, agentId: z.string(), turnId: z.string() }),
  'MentionInvitePromptDismissed.v1': z.object({ sequence, userId: z.string() }),
});

export type ReactionEvent = EventOf<typeof reactionCodec>;
export type Reaction = z.infer<typeof reaction>;
export type Reactor = Reaction['reactor'];
type ReactionTarget = Reaction['target'];

/**
 * Limits for one interaction: its reactions and receipts, because every read returns all of them; and its removed
 * reactions, because reads of the past scan all of them.
 */
export const MAX_MARKS = 1_000;
export const MAX_WITHDRAWN = 10_000;

export type ReactionRejection =
  | { readonly reason: 'not_found' }
  | { readonly reason: 'archived' }
  | { readonly reason: 'too_many_reactions' }
  | { readonly reason: 'not_a_user_message' }
  | { readonly reason: 'not_the_sender' };

type ReactionDecision = Decision<ReactionEvent, ReactionRejection>;

/** The members of an interaction that decisions depend on. */
export interface KnownInteraction {
  readonly target: ReactionTarget;
  /** The id of the user that sent it; null for other senders. */
  readonly senderUserId: EntityId | null;
  readonly turnId: string;
}

/** The interaction that a command concerns, with the results of its look-ups. */
export interface ReactionSubject {
  readonly organizationId: EntityId;
  readonly sequence: ChannelSequence;
  readonly interaction: KnownInteraction | null;
  readonly marks: number;
  readonly withdrawn: number;
}

/** A current reaction: the sequence of the event that added it, and the name that it shows. */
export interface CurrentReaction {
  readonly addedSequence: ChannelSequence;
  readonly name: string | null;
}

/** An agent without a name gets its name in the channel. */
export function decideReact(
  channel: ChannelState,
  subject: ReactionSubject,
  { emoji, reactor, current }: { emoji: string; reactor: Reactor; current: CurrentReaction | null },
): ReactionDecision {
  const found = find(channel, subject);
  if (!found.ok) return found;
  if (current !== null) return accept();
  if (subject.marks >= MAX_MARKS || subject.withdrawn >= MAX_WITHDRAWN) return refuse({ reason: 'too_many_reactions' });
  const name = reactor.name ?? nameInChannel(found.channel, reactor);
  const { target } = found.interaction;
  const data = { sequence: subject.sequence, emoji, reactor: { ...reactor, name }, target };
  return accept({ type: 'ReactionAdded.v1', data });
}

export function decideWithdraw(
  channel: ChannelState,
  subject: ReactionSubject,
  { emoji, reactor, current }: { emoji: string; reactor: Omit<Reactor, 'name'>; current: CurrentReaction | null },
): ReactionDecision {
  const found = find(channel, subject);
  if (!found.ok) return found;
  if (current === null) return accept();
  const { addedSequence: addedAt, name } = current;
  const { target } = found.interaction;
  const data = { sequence: subject.sequence, emoji, reactor: { ...reactor, name }, target, addedAt };
  return accept({ type: 'ReactionRemoved.v1', data });
}

/** Records once that an agent has read a user's message. */
export function decideReceipt(
  channel: ChannelState,
  subject: ReactionSubject,
  { agentId, recorded }: { readonly agentId: string; readonly recorded: boolean },
): ReactionDecision {
  const found = find(channel, subject);
  if (!found.ok) return found;
  const { target, turnId } = found.interaction;
  if (target.role !== 'user') return refuse({ reason: 'not_a_user_message' });
  if (recorded) return accept();
  if (subject.marks >= MAX_MARKS) return refuse({ reason: 'too_many_reactions' });
  return accept({ type: 'ReadReceiptRecorded.v1', data: { sequence: subject.sequence, agentId, turnId } });
}

/** Only the sender of the message sees the prompt, so only the sender can dismiss it. */
export function decideDismiss(
  channel: ChannelState,
  subject: ReactionSubject,
  { userId, dismissed }: { readonly userId: EntityId | null; readonly dismissed: boolean },
): ReactionDecision {
  const found = find(channel, subject);
  if (!found.ok) return found;
  if (userId === null || found.interaction.senderUserId !== userId) return refuse({ reason: 'not_the_sender' });
  if (dismissed) return accept();
  return accept({ type: 'MentionInvitePromptDismissed.v1', data: { sequence: subject.sequence, userId } });
}

type Found =
  | { readonly ok: true; readonly channel: NonNullable<ChannelState>; readonly interaction: KnownInteraction }
  | Extract<ReactionDecision, { ok: false }>;

/** Another organization's interaction is rejected like a missing one. */
function find(channel: ChannelState, { organizationId, interaction }: ReactionSubject): Found {
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
