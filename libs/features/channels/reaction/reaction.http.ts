import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';

import type { Channels } from '../channels.ts';
import { interactionParams, interactionSchema } from '../interaction/interaction.schemas.ts';
import type { InteractionQueries } from '../interaction/reads/queries.ts';
import { type InteractionRef, parseInteractionId } from '../interaction/interaction.id.ts';
import { readerOf } from '../interaction/reads/present.ts';
import { OF_INTERACTION, requireInteractionRef } from '../interaction/interaction.requests.ts';
import { sendChanged } from '../interaction/interaction.http.ts';
import type { Directories } from '../channel/channel.requests.ts';
import { type Caller, UNAUTHENTICATED } from '#libs/kernel/acting.ts';
import type { StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import {
  commandContext,
  conflict,
  forbidden,
  type HttpApp,
  idReference,
  invalid,
  liveCommand,
  type LiveCommandType,
  notFound,
  type Principal,
  requireMayActAs,
  routesTagged,
  singleEmoji,
  text,
} from '#libs/platform/http/index.ts';
import { unreachable } from '#libs/kernel/decider.ts';

import type { ReactionResult } from './reaction.commands.ts';
import { MAX_MARKS, MAX_WITHDRAWN, type ReactionRejection, type Reactor } from './reaction.ts';

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
  .meta({ id: 'ReactionAdd', examples: [{ agent_id: '01a1ff85-0000-7000-8000-000000000000', agent_name: 'Guide' }] });

const withdrawQuery = z.object({
  agent_id: idReference({ description: 'The agent whose reaction is removed. Default: the calling user' }).optional(),
});

const receiptBody = z
  .object({ agent_id: idReference({ description: 'The agent that has read the message' }) })
  .meta({ id: 'ReadReceiptRecord', examples: [{ agent_id: '01a1ff85-0000-7000-8000-000000000000' }] });

const { writes } = routesTagged('interactions');
const response = { 200: interactionSchema };

/** Declares the routes of reactions, receipts and dismissals. Each returns the interaction as the caller sees it. */
export function reactionRoutes(app: HttpApp, channels: Channels): void {
  emojiRoutes(app, channels);
  markRoutes(app, channels);
}

function emojiRoutes(app: HttpApp, { reactions, queries, directories }: Channels): void {
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
      answer(request, reply, queries, async (context, ref) => {
        const reactor = await namedReactor(request.principal, request.body ?? {}, directories);
        return reactions.react(context, ref, reactor, request.params.emoji);
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
      answer(request, reply, queries, (context, ref) => {
        const reactor = reactorOf(request.principal, 'query', request.query.agent_id);
        return reactions.withdraw(context, ref, reactor, request.params.emoji);
      }),
  );
}

function markRoutes(app: HttpApp, { reactions, queries }: Channels): void {
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
      return answer(request, reply, queries, (context, ref) => reactions.recordReceipt(context, ref, agentId));
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
      answer(request, reply, queries, (context, ref) => reactions.dismissMentionInvitePrompt(context, ref)),
  );
}

async function answer(
  request: FastifyRequest<{ Params: { interaction_id: string } }>,
  reply: FastifyReply,
  queries: InteractionQueries,
  run: (context: CommandContext, ref: InteractionRef) => Promise<ReactionResult>,
): Promise<FastifyReply> {
  const ref = requireInteractionRef(request.params.interaction_id);
  const result = await run(commandContext(request), ref);
  if (!result.ok) throw reactionError(result.rejection);
  const { principal } = request;
  const audience = { reader: readerOf(principal), includeIncomplete: true };
  const read = () => queries.interaction(principal.organizationId, ref, audience);
  return sendChanged(request, reply, ref, result.revision, read);
}

const reactionData = z.object({
  interaction_id: idReference({ description: 'An interaction of the channel' }),
  emoji: singleEmoji({ description: 'Exactly one emoji' }),
  agent_id: idReference({ description: 'The agent that reacts. Default: the calling user' }).nullish(),
});
const reactionAddData = reactionData.extend({ agent_name: agentName.nullish() });

/** The commands of sockets: the same as the routes `…/reactions/{emoji}`, in the channel of the socket. */
export function reactionLiveCommands({ reactions, directories }: Channels): readonly LiveCommandType[] {
  return [
    liveCommand({
      type: 'reaction.add',
      summary: 'React to an interaction, as the calling user or as an agent',
      data: reactionAddData,
      isDurable: true,
      async run({ context, principal, channelId, data }) {
        const ref = refIn(channelId, data.interaction_id);
        const reactor = await namedReactor(principal, data, directories);
        return revisionOf(await reactions.react(context, ref, reactor, data.emoji));
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
        return revisionOf(await reactions.withdraw(context, ref, reactor, data.emoji));
      },
    }),
  ];
}

/** @throws HttpError 404 for an interaction that is not in the channel of the socket */
function refIn(channelId: EntityId, interactionId: EntityId): InteractionRef {
  const ref = parseInteractionId(interactionId);
  if (ref?.channelId !== channelId) throw notFound();
  return ref;
}

function revisionOf(result: ReactionResult): StreamRevision {
  if (!result.ok) throw reactionError(result.rejection);
  return result.revision;
}

/** Input and errors of requests and socket commands about reactions. */

function reactionError({ reason }: ReactionRejection): Error {
  switch (reason) {
    case 'not_found':
      return notFound();
    case 'archived':
      return conflict('The channel is archived', 'archived');
    case 'too_many_reactions':
      return conflict(
        `An interaction takes ${MAX_MARKS} reactions and read receipts, and ${MAX_WITHDRAWN} that are taken back`,
        'too_many_reactions',
      );
    case 'not_a_user_message':
      return conflict('Read receipts belong to messages of users', 'not_a_user_message');
    case 'not_the_sender':
      return forbidden('Only the user who sent the message can dismiss its prompt', 'not_the_sender');
    default:
      return unreachable(reason);
  }
}

/**
 * The user or agent that reacts, with its display name.
 *
 * @throws HttpError 403 for a user without the scope `impersonate` that reacts as an agent
 * @throws ValidationFailure 422 for a service without an `agent_id`
 */
async function namedReactor(
  principal: Caller & Pick<Principal, 'organizationId'>,
  input: { readonly agent_id?: EntityId | null | undefined; readonly agent_name?: string | null | undefined },
  { users }: Pick<Directories, 'users'>,
): Promise<Reactor> {
  const { type, id } = reactorOf(principal, 'body', input.agent_id);
  const name = type === 'agent' ? input.agent_name : (await users.user(principal.organizationId, id))?.displayName;
  return { type, id, name: name || null };
}

/** As {@link namedReactor}, without the name. */
function reactorOf(
  principal: Caller,
  where: 'body' | 'query',
  agentId: EntityId | null | undefined,
): Omit<Reactor, 'name'> {
  if (typeof agentId === 'string') {
    requireMayActAs(principal, UNAUTHENTICATED);
    return { type: 'agent', id: agentId };
  }
  if (principal.principalType === 'user') return { type: 'user', id: principal.principalId };
  throw invalid([where, 'agent_id'], 'a service reacts for an agent only', agentId ?? null);
}
