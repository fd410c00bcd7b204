/* Decisions about complete messages: their senders edit and delete them, and every participant pins them. */
import { isDeepStrictEqual } from 'node:util';

import { accept, refuse, type Decision } from '#libs/kernel/decider.ts';

import { type Channel, type ChannelDecision, type ChannelEvent, MAX_PINNED } from '../channel/channel.ts';
import type { InteractionEvent, StoredContent, SupersedingInteraction } from './interaction.events.ts';
import type { ChannelStream, InteractionRejection, InteractionTarget } from './interaction.ts';
import type { StoredInteraction } from './reads/resource.ts';

/** A stored interaction that a command edits or deletes, with the results of its look-ups. */
export interface StoredTarget extends Omit<InteractionTarget, 'exists'> {
  /** Null if the channel has no such interaction. */
  readonly stored: StoredInteraction | null;
}

export function decideEdit(
  state: ChannelStream,
  target: StoredTarget,
  content: StoredContent,
): Decision<InteractionEvent, InteractionRejection> {
  const found = findStored(state, target);
  if (!found.ok) return found;
  if (found.isDeleted) return refuse({ reason: 'deleted' });
  const { interaction } = found;
  if (isDeepStrictEqual(interaction.content, content)) return accept();
  const data = { sequence: target.sequence, interaction: { ...interaction, content } };
  return accept({ type: 'InteractionEdited.v1', data });
}

/** The interaction keeps its place, sender and time. */
export function decideDelete(
  state: ChannelStream,
  target: StoredTarget,
): Decision<InteractionEvent | ChannelEvent, InteractionRejection> {
  const found = findStored(state, target);
  if (!found.ok) return found;
  if (found.isDeleted) return accept();
  const { sequence } = target;
  const interaction = { ...found.interaction, content: [], metadata: null, invocationConfig: null };
  const deleted: InteractionEvent = { type: 'InteractionDeleted.v1', data: { sequence, interaction } };
  const isPinned = state.channel?.pinned?.some((one) => one.sequence === sequence) === true;
  if (!isPinned) return accept(deleted);
  return accept<InteractionEvent | ChannelEvent>(deleted, { type: 'InteractionUnpinned.v1', data: { sequence } });
}

type FoundStored =
  | { readonly ok: true; readonly interaction: SupersedingInteraction; readonly isDeleted: boolean }
  | Extract<Decision<InteractionEvent, InteractionRejection>, { ok: false }>;

function findStored({ channel }: ChannelStream, target: StoredTarget): FoundStored {
  const { organizationId, stored, isSender } = target;
  if (channel === null || channel.organizationId !== organizationId || stored === null) {
    return refuse({ reason: 'not_found' });
  }
  if (channel.archivedAt !== null) return refuse({ reason: 'archived' });
  const { sequence: _, complete, deletedAt, ...interaction } = stored;
  if (!isSender(interaction.participant)) return refuse({ reason: 'not_the_sender' });
  const { contentRole } = interaction;
  const isMessage = contentRole === 'user_message' || contentRole === 'agent_response';
  return complete && isMessage
    ? { ok: true, interaction, isDeleted: deletedAt !== undefined }
    : refuse({ reason: 'not_editable' });
}

/** @param exists whether the channel has such an interaction, which was not deleted */
export function decidePin({ pinned = [], archivedAt }: Channel, sequence: number, exists: boolean): ChannelDecision {
  if (archivedAt !== null) return refuse({ reason: 'archived' });
  if (!exists) return refuse({ reason: 'interaction_not_found' });
  if (pinned.some((one) => one.sequence === sequence)) return accept();
  if (pinned.length >= MAX_PINNED) return refuse({ reason: 'too_many_pinned' });
  return accept({ type: 'InteractionPinned.v1', data: { sequence } });
}

export function decideUnpin({ pinned = [], archivedAt }: Channel, sequence: number): ChannelDecision {
  if (archivedAt !== null) return refuse({ reason: 'archived' });
  const isPinned = pinned.some((one) => one.sequence === sequence);
  return isPinned ? accept({ type: 'InteractionUnpinned.v1', data: { sequence } }) : accept();
}
