import { z } from 'zod';

import { placeOfInteraction, readReceiptSchema } from '#libs/features/interactions/index.ts';
import type { InteractionPlace } from '#libs/features/interactions/index.ts';
import type { StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { liveCommand, notFound } from '#libs/platform/http/index.ts';
import type { LiveCommandType } from '#libs/platform/http/index.ts';
import type { EventDescription } from '#libs/platform/live/index.ts';

import type { ReactionCommands, ReactionResult } from './reactions.commands.ts';
import { reactionError } from './reactions.errors.ts';
import { namedReactor, reactorOf } from './reactions.inputs.ts';
import type { ReactorNames } from './reactions.inputs.ts';
import { reactionAddData, reactionData } from './reactions.schemas.ts';

/** What sockets may do with reactions: the same as the routes `…/reactions/{emoji}`, in their own channel. */
export function reactionLiveCommands(
  parts: ReactorNames & { readonly commands: ReactionCommands },
): readonly LiveCommandType[] {
  const { commands } = parts;
  return [
    liveCommand({
      type: 'reaction.add',
      summary: 'React to an interaction, as the calling user or as an agent',
      data: reactionAddData,
      isDurable: true,
      async run({ context, principal, channelId, data }) {
        const place = placeIn(channelId, data.interaction_id);
        const reactor = await namedReactor(principal, data, parts);
        return revisionOf(await commands.react(context, place, reactor, data.emoji));
      },
    }),
    liveCommand({
      type: 'reaction.remove',
      summary: "Take back the calling user's or an agent's reaction",
      data: reactionData,
      isDurable: true,
      async run({ context, principal, channelId, data }) {
        const place = placeIn(channelId, data.interaction_id);
        const reactor = reactorOf(principal, 'body', data.agent_id);
        return revisionOf(await commands.withdraw(context, place, reactor, data.emoji));
      },
    }),
  ];
}

/** A socket sees one channel, and acts in no other. @throws HttpError 404 */
function placeIn(channelId: EntityId, interactionId: EntityId): InteractionPlace {
  const place = placeOfInteraction(interactionId);
  if (place?.channelId !== channelId) throw notFound();
  return place;
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

/** What listeners can be told of what is added to interactions. */
export const reactionEventTypes: readonly EventDescription[] = [
  { type: 'reaction.added', summary: 'A user or an agent reacted', data: reaction },
  { type: 'reaction.removed', summary: 'A reaction was taken back', data: reaction },
  { type: 'receipt.added', summary: 'An agent has read a message', data: readReceiptSchema },
  {
    type: 'mention_invite_prompt.dismissed',
    summary: 'The sender of a message does not want to invite those whom it mentions',
    data: dismissal,
  },
];
