import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';

import { CHANNEL } from '#libs/features/channels/index.ts';
import { interactionParams, interactionSchema, readerOf, requirePlace } from '#libs/features/interactions/index.ts';
import type { InteractionPlace, InteractionQueries } from '#libs/features/interactions/index.ts';
import { faultAfterWrite, storeUnavailable } from '#libs/kernel/faults.ts';
import {
  commandContext,
  idReference,
  requireMayActAs,
  sendJson,
  setPosition,
  singleEmoji,
  text,
  UNAUTHENTICATED,
} from '#libs/platform/http/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import { streamName } from '#libs/platform/readmodel/index.ts';

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

const write = { scope: 'write' };
/** All of them change the marks of one interaction, and answer with it. */
const common = { tags: ['interactions'], response: { 200: interactionSchema } };

/** Declares the routes of reactions, receipts and dismissals. Each answers the interaction as the caller sees it. */
export function reactionRoutes(app: HttpApp, parts: ReactionRouteParts): void {
  reactRoute(app, parts);
  withdrawRoute(app, parts);
  receiptRoute(app, parts);
  dismissRoute(app, parts);
}

function reactRoute(app: HttpApp, parts: ReactionRouteParts): void {
  app.put(
    '/api/v1/interactions/:interaction_id/reactions/:emoji',
    {
      config: write,
      schema: {
        operationId: 'addReaction',
        summary: 'React to an interaction, as the calling user or as an agent',
        params: reactionParams,
        body: reactBody,
        ...common,
      },
    },
    async (request, reply) => {
      const { interaction_id: id, emoji } = request.params;
      const place = requirePlace(id);
      const reactor = await namedReactor(request.principal, request.body ?? {}, parts);
      const result = await parts.commands.react(commandContext(request), place, reactor, emoji);
      return sendReacted(request, reply, place, result, parts);
    },
  );
}

function withdrawRoute(app: HttpApp, parts: ReactionRouteParts): void {
  app.delete(
    '/api/v1/interactions/:interaction_id/reactions/:emoji',
    {
      config: write,
      schema: {
        operationId: 'removeReaction',
        summary: 'Remove a reaction of the calling user or of an agent',
        params: reactionParams,
        querystring: withdrawQuery,
        ...common,
      },
    },
    async (request, reply) => {
      const { interaction_id: id, emoji } = request.params;
      const place = requirePlace(id);
      const reactor = reactorOf(request.principal, 'query', request.query.agent_id);
      const result = await parts.commands.withdraw(commandContext(request), place, reactor, emoji);
      return sendReacted(request, reply, place, result, parts);
    },
  );
}

function receiptRoute(app: HttpApp, parts: ReactionRouteParts): void {
  app.post(
    '/api/v1/interactions/:interaction_id/read_receipts',
    {
      config: write,
      schema: {
        operationId: 'recordReadReceipt',
        summary: "Record that an agent has read a user's message; repetitions have no effect",
        params: interactionParams,
        body: receiptBody,
        ...common,
      },
    },
    async (request, reply) => {
      requireMayActAs(request.principal, UNAUTHENTICATED);
      const place = requirePlace(request.params.interaction_id);
      const result = await parts.commands.recordReceipt(commandContext(request), place, request.body.agent_id);
      return sendReacted(request, reply, place, result, parts);
    },
  );
}

function dismissRoute(app: HttpApp, parts: ReactionRouteParts): void {
  app.post(
    '/api/v1/interactions/:interaction_id/mention_invite_prompt/dismiss',
    {
      config: write,
      schema: {
        operationId: 'dismissMentionInvitePrompt',
        summary: 'Dismiss the mention-invite prompt of a message that the calling user sent',
        params: interactionParams,
        ...common,
      },
    },
    async (request, reply) => {
      const place = requirePlace(request.params.interaction_id);
      const result = await parts.commands.dismissMentionInvitePrompt(commandContext(request), place);
      return sendReacted(request, reply, place, result, parts);
    },
  );
}

async function sendReacted(
  request: FastifyRequest,
  reply: FastifyReply,
  place: InteractionPlace,
  result: ReactionResult,
  { interactions }: ReactionRouteParts,
): Promise<FastifyReply> {
  if (!result.ok) throw reactionError(result.rejection);
  const { principal } = request;
  const audience = { reader: readerOf(principal), includeIncomplete: true };
  const found = await interactions.interaction(principal.organizationId, place, audience).catch((error: unknown) => {
    throw faultAfterWrite(error);
  });
  // The command was accepted, so the interaction exists, and Redis lacks it.
  if (found === null) throw faultAfterWrite(storeUnavailable('redis'));
  setPosition(request, reply, { stream: streamName(CHANNEL, place.channelId), revision: result.revision });
  return sendJson(reply, found);
}
