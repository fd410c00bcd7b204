import { interactionId } from '#libs/features/interactions/index.ts';
import { unreachable } from '#libs/kernel/decider.ts';
import type { ChannelSequence, StreamEvent } from '#libs/kernel/event.ts';
import { sequenceOf } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { eventFrame } from '#libs/platform/live/index.ts';
import type { EventFrame } from '#libs/platform/live/index.ts';
import type { ProjectedEvent } from '#libs/platform/readmodel/index.ts';

import type { Reaction, ReactionEvent } from './reaction.events.ts';
import { receiptResource } from './reactions.queries.ts';

/** What listeners are told of what is added to interactions. */
export function reactionFrame({ id: channelId, event }: ProjectedEvent<null, ReactionEvent>): EventFrame {
  const { type, data } = toldOfReaction(event, channelId);
  return eventFrame({
    sequence: sequenceOf(event.revision),
    type,
    at: event.metadata.at,
    data: { json: JSON.stringify(data) },
    flags: 0,
  });
}

/** The type and the data of an event, as everybody is told of it. */
export function toldOfReaction(
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

/** One reaction: who has listened from the beginning can make the summaries of REST of them. */
function reactionOf(id: EntityId, { emoji, reactor, target }: Reaction): object {
  return {
    interaction_id: id,
    emoji,
    reactor: { type: reactor.type, id: reactor.id, name: reactor.name },
    target_role: target.role,
    target_sender_id: target.senderId,
  };
}
