/* What the routes of reactions take; they answer with interactions. */
import { z } from 'zod';

import { interactionParams } from '#libs/features/interactions/index.ts';
import { idReference, singleEmoji, text } from '#libs/platform/http/index.ts';

export const reactionParams = interactionParams.extend({
  emoji: singleEmoji({ description: 'Exactly one emoji, percent-encoded' }),
});

const agentName = text({ max: 256, description: 'Shown to others; without it, the name that it has in the channel' });

export const reactBody = z
  .object({
    agent_id: idReference({ description: 'The agent that reacts; without it, the calling user does' }).nullish(),
    agent_name: agentName.nullish(),
  })
  .nullish()
  .meta({ id: 'ReactionAdd' });

export const withdrawQuery = z.object({
  agent_id: idReference({ description: 'The agent whose reaction it is; without it, the calling user' }).optional(),
});

export const receiptBody = z
  .object({ agent_id: idReference({ description: 'The agent that has read the message' }) })
  .meta({ id: 'ReadReceiptRecord' });

/** What a socket says of a reaction that it adds or takes back. */
export const reactionData = z.object({
  interaction_id: idReference({ description: 'An interaction of the channel' }),
  emoji: singleEmoji({ description: 'Exactly one emoji' }),
  agent_id: idReference({ description: 'The agent that reacts; without it, the calling user does' }).nullish(),
});

export const reactionAddData = reactionData.extend({ agent_name: agentName.nullish() });
