import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';

import {
  interactionParams,
  interactionSchema,
  readerOf,
  requirePlace,
  sendChanged,
} from '#libs/features/interactions/index.ts';
import type { InteractionPlace, InteractionQueries } from '#libs/features/interactions/index.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import {
  commandContext,
  idReference,
  requireMayActAs,
  routesTagged,
  singleEmoji,
  text,
  UNAUTHENTICATED,
} from '#libs/platform/http/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';

import { namedReactor, reactionError, reactorOf } from './reaction.commands.ts';
import type { ReactionCommands, ReactionResult, ReactorNames } from './reaction.commands.ts';

const reactionParams = interactionParams.extend({
  emoji: singleEmoji({ description: 'Exactly one emoji, percent-encoded' }),
});

export const agentName = text({
  max: 256,
  description: 'Display name of the agent. Default: its name in the channel',
});

const reactBody = z
  .object({
    agent_id: idReference({ description: 'The agent that reacts. Default: the calling user' }).nullish(),
    agent_name: agentName.nullish(),
  })
  .nullish()
  .meta({ id: 'ReactionAdd' });

const withdrawQuery = z.object({
  agent_id: idReference({ description: 'The agent whose reaction is removed. Default: the calling user' }).optional(),
});

const receiptBody = z
  .object({ agent_id: idReference({ description: 'The agent that has read the message' }) })
  .meta({ id: 'ReadReceiptRecord' });

export interface ReactionRouteParts extends ReactorNames {
  readonly commands: ReactionCommands;
  readonly interactions: InteractionQueries;
}

const { writes } = routesTagged('interactions');
const response = { 200: interactionSchema };

/** Declares the routes of reactions, receipts and dismissals. Each answers with the interaction as the caller sees it. */
export function reactionRoutes(app: HttpApp, { commands, interactions, nameOf }: ReactionRouteParts): void {
  app.put(
    '/api/v1/interactions/:interaction_id/reactions/:emoji',
    writes({
      operationId: 'addReaction',
      summary: 'React to an interaction, as the calling user or as an agent',
      params: reactionParams,
      body: reactBody,
      response,
    }),
    (request, reply) =>
      answer(request, reply, interactions, async (context, place) => {
        const reactor = await namedReactor(request.principal, request.body ?? {}, { nameOf });
        return commands.react(context, place, reactor, request.params.emoji);
      }),
  );
  app.delete(
    '/api/v1/interactions/:interaction_id/reactions/:emoji',
    writes({
      operationId: 'removeReaction',
      summary: 'Remove a reaction of the calling user or of an agent',
      params: reactionParams,
      querystring: withdrawQuery,
      response,
    }),
    (request, reply) =>
      answer(request, reply, interactions, (context, place) => {
        const reactor = reactorOf(request.principal, 'query', request.query.agent_id);
        return commands.withdraw(context, place, reactor, request.params.emoji);
      }),
  );
  app.post(
    '/api/v1/interactions/:interaction_id/read_receipts',
    writes({
      operationId: 'recordReadReceipt',
      summary: "Record that an agent has read a user's message; repetitions have no effect",
      params: interactionParams,
      body: receiptBody,
      response,
    }),
    (request, reply) => {
      requireMayActAs(request.principal, UNAUTHENTICATED);
      const { agent_id: agentId } = request.body;
      return answer(request, reply, interactions, (context, place) => commands.recordReceipt(context, place, agentId));
    },
  );
  app.post(
    '/api/v1/interactions/:interaction_id/mention_invite_prompt/dismiss',
    writes({
      operationId: 'dismissMentionInvitePrompt',
      summary: 'Dismiss the mention-invite prompt of a message that the calling user sent',
      params: interactionParams,
      response,
    }),
    (request, reply) =>
      answer(request, reply, interactions, (context, place) => commands.dismissMentionInvitePrompt(context, place)),
  );
}

async function answer(
  request: FastifyRequest<{ Params: { interaction_id: string } }>,
  reply: FastifyReply,
  interactions: InteractionQueries,
  run: (context: CommandContext, place: InteractionPlace) => Promise<ReactionResult>,
): Promise<FastifyReply> {
  const place = requirePlace(request.params.interaction_id);
  const result = await run(commandContext(request), place);
  if (!result.ok) throw reactionError(result.rejection);
  const { principal } = request;
  const audience = { reader: readerOf(principal), includeIncomplete: true };
  const read = () => interactions.interaction(principal.organizationId, place, audience);
  return sendChanged(request, reply, place, result.revision, read);
}
