/** Reactions, receipts and dismissals on sockets and event streams, and in Kafka for other teams. */
import { z } from 'zod';

import { interactionId, type InteractionRef, parseInteractionId } from '../interaction/interaction.id.ts';
import { readReceiptSchema } from '../interaction/interaction.schemas.ts';
import { unreachable } from '#libs/kernel/decider.ts';
import type { ChannelSequence, StreamEvent, StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { idReference, liveCommand, notFound, singleEmoji, type LiveCommandType } from '#libs/platform/http/index.ts';
import { publicEvents, type EventContent, type EventDescription } from '#libs/platform/live/index.ts';
import type { ProjectedEvent } from '#libs/platform/readmodel/index.ts';

import { reactionCodec, type Reaction, type ReactionEvent } from './reaction.ts';
import {
  namedReactor,
  type ReactionCommands,
  reactionError,
  type ReactionResult,
  type ReactorNames,
  reactorOf,
} from './reaction.commands.ts';
import { agentName } from './reaction.http.ts';
import { receiptResource } from './reaction.read.ts';

export function reactionFrame({ id: channelId, event }: ProjectedEvent<null, ReactionEvent>): EventContent {
  return publish(event, channelId);
}

function publish(event: StreamEvent<ReactionEvent>, channelId: EntityId): EventContent {
  const { type, data } = messageOf(event, channelId);
  return { type, json: JSON.stringify(data) };
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

const reactionData = z.object({
  interaction_id: idReference({ description: 'An interaction of the channel' }),
  emoji: singleEmoji({ description: 'Exactly one emoji' }),
  agent_id: idReference({ description: 'The agent that reacts. Default: the calling user' }).nullish(),
});
const reactionAddData = reactionData.extend({ agent_name: agentName.nullish() });

/** The commands of sockets: the same as the routes `…/reactions/{emoji}`, in the channel of the socket. */
export function reactionLiveCommands({
  commands,
  users,
}: {
  readonly commands: ReactionCommands;
  readonly users: ReactorNames;
}): readonly LiveCommandType[] {
  return [
    liveCommand({
      type: 'reaction.add',
      summary: 'React to an interaction, as the calling user or as an agent',
      data: reactionAddData,
      isDurable: true,
      async run({ context, principal, channelId, data }) {
        const ref = refIn(channelId, data.interaction_id);
        const reactor = await namedReactor(principal, data, users);
        return revisionOf(await commands.react(context, ref, reactor, data.emoji));
      },
    }),
    liveCommand({
      type: 'reaction.remove',
      summary: 'Remove a reaction of the calling user or of an agent',
      data: reactionData,
      isDurable: true,
      async run({ context, principal, channelId, data }) {
        const ref = refIn(channelId, data.interaction_id);
        const reactor = reactorOf(principal, 'body', data.agent_id);
        return revisionOf(await commands.withdraw(context, ref, reactor, data.emoji));
      },
    }),
  ];
}

/** @throws HttpError 404 for an interaction of another channel than that of the socket */
function refIn(channelId: EntityId, interactionId: EntityId): InteractionRef {
  const ref = parseInteractionId(interactionId);
  if (ref?.channelId !== channelId) throw notFound();
  return ref;
}

function revisionOf(result: ReactionResult): StreamRevision {
  if (!result.ok) throw reactionError(result.rejection);
  return result.revision;
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

/** Messages are the same as the data of frames. */
export const publicReactionEvents = publicEvents({
  codec: reactionCodec,
  described: reactionEventTypes,
  publish,
});
