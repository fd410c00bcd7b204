import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';

import { interactionParams, interactionSchema } from '../interaction/interaction.schemas.ts';
import type { InteractionQueries } from '../interaction/reads/queries.ts';
import type { InteractionRef } from '../interaction/interaction.id.ts';
import { readerOf } from '../interaction/reads/present.ts';
import { OF_INTERACTION, requireInteractionRef } from '../interaction/interaction.requests.ts';
import { sendChanged } from '../interaction/interaction.http.ts';
import { UNAUTHENTICATED } from '#libs/kernel/acting.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import {
  commandContext,
  type HttpApp,
  idReference,
  requireMayActAs,
  routesTagged,
  singleEmoji,
  text,
} from '#libs/platform/http/index.ts';

import {
  namedReactor,
  type ReactionCommands,
  reactionError,
  type ReactionResult,
  type ReactorNames,
  reactorOf,
} from './reaction.commands.ts';

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

export interface ReactionRouteParts {
  readonly users: ReactorNames;
  readonly commands: ReactionCommands;
  readonly interactions: InteractionQueries;
}

const { writes } = routesTagged('interactions');
const response = { 200: interactionSchema };

/** Declares the routes of reactions, receipts and dismissals. Each returns the interaction as the caller sees it. */
export function reactionRoutes(app: HttpApp, parts: ReactionRouteParts): void {
  emojiRoutes(app, parts);
  markRoutes(app, parts);
}

function emojiRoutes(app: HttpApp, { commands, interactions, users }: ReactionRouteParts): void {
  app.put(
    '/api/v1/interactions/:interaction_id/reactions/:emoji',
    writes(
      {
        operationId: 'addReaction',
        summary: 'React to an interaction, as the calling user or as an agent',
        params: reactionParams,
        body: reactBody,
        response,
      },
      OF_INTERACTION,
    ),
    (request, reply) =>
      answer(request, reply, interactions, async (context, ref) => {
        const reactor = await namedReactor(request.principal, request.body ?? {}, users);
        return commands.react(context, ref, reactor, request.params.emoji);
      }),
  );
  app.delete(
    '/api/v1/interactions/:interaction_id/reactions/:emoji',
    writes(
      {
        operationId: 'removeReaction',
        summary: 'Remove a reaction of the calling user or of an agent',
        params: reactionParams,
        querystring: withdrawQuery,
        response,
      },
      OF_INTERACTION,
    ),
    (request, reply) =>
      answer(request, reply, interactions, (context, ref) => {
        const reactor = reactorOf(request.principal, 'query', request.query.agent_id);
        return commands.withdraw(context, ref, reactor, request.params.emoji);
      }),
  );
}

function markRoutes(app: HttpApp, { commands, interactions }: ReactionRouteParts): void {
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
      return answer(request, reply, interactions, (context, ref) => commands.recordReceipt(context, ref, agentId));
    },
  );
  app.post(
    '/api/v1/interactions/:interaction_id/mention_invite_prompt/dismiss',
    writes(
      {
        operationId: 'dismissMentionInvitePrompt',
        summary: 'Dismiss the mention-invite prompt of a message that the calling user sent',
        params: interactionParams,
        response,
      },
      OF_INTERACTION,
    ),
    (request, reply) =>
      answer(request, reply, interactions, (context, ref) => commands.dismissMentionInvitePrompt(context, ref)),
  );
}

async function answer(
  request: FastifyRequest<{ Params: { interaction_id: string } }>,
  reply: FastifyReply,
  interactions: InteractionQueries,
  run: (context: CommandContext, ref: InteractionRef) => Promise<ReactionResult>,
): Promise<FastifyReply> {
  const ref = requireInteractionRef(request.params.interaction_id);
  const result = await run(commandContext(request), ref);
  if (!result.ok) throw reactionError(result.rejection);
  const { principal } = request;
  const audience = { reader: readerOf(principal), includeIncomplete: true };
  const read = () => interactions.interaction(principal.organizationId, ref, audience);
  return sendChanged(request, reply, ref, result.revision, read);
}
