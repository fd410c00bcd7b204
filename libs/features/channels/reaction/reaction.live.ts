/** Reactions, receipts and dismissals, as sockets and event streams show them, and Kafka for other teams. */
import { z } from 'zod';

import { interactionId } from '../interaction/interaction.id.ts';
import { readReceiptSchema } from '../interaction/interaction.schemas.ts';
import { unreachable } from '#libs/kernel/decider.ts';
import type { ChannelSequence, StreamEvent } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import {
  type EventContent,
  type EventDescription,
  type Represented,
  representedBy,
} from '#libs/platform/live/index.ts';

import type { Reaction, ReactionEvent } from './reaction.ts';
import { receiptResource } from './reaction.read.ts';

/** The frame of an event, which is also its message for other teams. */
export function reactionFrame(event: StreamEvent<ReactionEvent>, channelId: EntityId): EventContent {
  const { type, data } = messageOf(event, channelId);
  return { type, json: JSON.stringify(data), onBehalfOf: representedBy(event.metadata.actor, markerOf(event)) };
}

/** The user or agent that the mark is of. */
function markerOf({ type, data }: StreamEvent<ReactionEvent>): Represented {
  switch (type) {
    case 'ReactionAdded.v1':
    case 'ReactionRemoved.v1':
      return { type: data.reactor.type, id: data.reactor.id };
    case 'ReadReceiptRecorded.v1':
      return { type: 'agent', id: data.agentId };
    case 'MentionInvitePromptDismissed.v1':
      return { type: 'user', id: data.userId };
  }
}

function messageOf(
  event: StreamEvent<ReactionEvent>,
  channelId: EntityId,
): { readonly type: string; readonly data: object } {
  const id = interactionId({ channelId, sequence: event.data.sequence as ChannelSequence });
  switch (event.type) {
    case 'ReactionAdded.v1':
      return { type: 'reaction.added', data: reactionOf(id, event.data) };
    case 'ReactionRemoved.v1':
      return { type: 'reaction.removed', data: reactionOf(id, event.data) };
    case 'ReadReceiptRecorded.v1': {
      const { agentId, turnId } = event.data;
      const receipt = { id: event.id, agentId, turnId, readAt: event.metadata.at };
      return { type: 'receipt.added', data: receiptResource(id, receipt) };
    }
    case 'MentionInvitePromptDismissed.v1':
      return {
        type: 'mention_invite_prompt.dismissed',
        data: { interaction_id: id, user_id: event.data.userId },
      };
    default:
      return unreachable(event);
  }
}

/** One reaction. Subscribers can compute the summaries of REST from all of them. */
function reactionOf(id: EntityId, { emoji, reactor, target }: Reaction): object {
  return {
    interaction_id: id,
    emoji,
    reactor: { type: reactor.type, id: reactor.id, name: reactor.name },
    target_role: target.role,
    target_sender_id: target.senderId,
  };
}

const reaction = z
  .object({
    interaction_id: z.string(),
    emoji: z.string(),
    reactor: z.object({ type: z.enum(['user', 'agent']), id: z.string(), name: z.string().nullable() }),
    target_role: z.enum(['user', 'assistant']),
    target_sender_id: z.string().nullable(),
  })
  .meta({ id: 'Reaction' });

const dismissal = z
  .object({ interaction_id: z.string(), user_id: z.string() })
  .meta({ id: 'MentionInvitePromptDismissal' });

/** The types of frames. */
export const reactionEventTypes: readonly EventDescription[] = [
  { type: 'reaction.added', summary: 'A user or an agent reacted', data: reaction },
  { type: 'reaction.removed', summary: 'A reaction was removed', data: reaction },
  { type: 'receipt.added', summary: 'An agent has read a message', data: readReceiptSchema },
  {
    type: 'mention_invite_prompt.dismissed',
    summary: 'The sender of a message dismissed its mention-invite prompt',
    data: dismissal,
  },
];
