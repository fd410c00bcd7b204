import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';

import type { Channels } from '../channels.ts';
import { CHANNEL } from '../channel.keys.ts';
import type { ChannelSequence, StreamRevision } from '#libs/kernel/event.ts';
import { faultAfterWrite, storeUnavailable } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import {
  commandContext,
  type HttpApp,
  liveCommand,
  type LiveCommandType,
  notFound,
  OF_CHANNEL,
  openPage,
  readPast,
  routesTagged,
  sendJson,
  sendPage,
  setPosition,
} from '#libs/platform/http/index.ts';
import { streamName } from '#libs/platform/streams/index.ts';

import { draftRoutes } from './drafts.ts';
import { type InteractionResult, ownSpan } from './interaction.commands.ts';
import { interactionId, type InteractionRef } from './interaction.id.ts';
import {
  interactionError,
  interactionToPost,
  OF_INTERACTION,
  requireAddable,
  requireInteractionRef,
} from './interaction.requests.ts';
import {
  appendContentBody,
  channelParams,
  completeInteractionBody,
  failInteractionBody,
  interactionPageSchema,
  interactionParams,
  interactionSchema,
  listInteractionsQuery,
  postInteractionBody,
  readInteractionQuery,
} from './interaction.schemas.ts';
import { readerOf } from './reads/present.ts';
import type { InteractionQueries } from './reads/queries.ts';

const { reads, writes } = routesTagged('interactions');
const response = { 200: interactionSchema };

/** Declares the routes of interactions: reads first, then commands. */
export function interactionRoutes(app: HttpApp, channels: Channels): void {
  readRoute(app, channels);
  listRoute(app, channels);
  postRoute(app, channels);
  changeRoutes(app, channels);
  draftRoutes(app, channels.drafts);
}

function readRoute(app: HttpApp, { queries }: Channels): void {
  app.get(
    '/api/v1/interactions/:interaction_id',
    reads(
      {
        operationId: 'getInteraction',
        summary: 'Read an interaction',
        params: interactionParams,
        querystring: readInteractionQuery,
        response,
      },
      OF_INTERACTION,
    ),
    async (request, reply) => {
      const { organizationId } = request.principal;
      const ref = requireInteractionRef(request.params.interaction_id);
      const { as_of: asOf, include_incomplete: includeIncomplete } = request.query;
      const includeToolCallUpdates = request.query.include_tool_call_updates;
      const shown = { reader: readerOf(request.principal), includeIncomplete, includeToolCallUpdates };
      const read = () =>
        queries.at(organizationId, ref.channelId, asOf, (view) =>
          request.query.include_nested_interactions
            ? queries.nested(organizationId, ref, shown, view)
            : queries.interaction(organizationId, ref, shown, view),
        );
      const found = await (asOf === undefined ? read() : readPast(request, reply, read));
      if (found === null) throw notFound();
      return sendJson(reply, found);
    },
  );
}

function listRoute(app: HttpApp, { queries }: Channels): void {
  app.get(
    '/api/v1/channels/:id/interactions',
    reads(
      {
        operationId: 'listInteractions',
        summary: "List a channel's interactions, by sequence",
        params: channelParams,
        querystring: listInteractionsQuery,
        response: { 200: interactionPageSchema },
      },
      OF_CHANNEL,
    ),
    async (request, reply) => {
      // Whether reactors are named changes no page, so cursors are not bound to it.
      const { size: _size, page: _page, cursor: _cursor, include_reactors: namesReactors, ...query } = request.query;
      const { id } = request.params;
      const page = openPage(request, request.query, { ...query, channel: id });
      const filter = {
        order: query.order,
        afterSequence: query.after_sequence,
        beforeSequence: query.before_sequence,
        createdAfter: query.created_after,
        createdBefore: query.created_before,
        contentRole: query.content_role,
        turnId: query.interaction_id,
        includeIncomplete: query.include_incomplete,
        endsBeforeIncomplete: !query.include_incomplete && isPolled(request.query),
        includeToolCallUpdates: query.include_tool_call_updates,
      };
      const { organizationId } = request.principal;
      const reader = { ...readerOf(request.principal), namesReactors };
      const read = () =>
        queries.at(organizationId, id, query.as_of, (view) =>
          queries.list(organizationId, id, filter, page, reader, view),
        );
      const found = await (query.as_of === undefined ? read() : readPast(request, reply, read));
      if (found === null) throw notFound();
      const { oldestIncomplete: sequence } = found;
      const meta = {
        ...page.meta(found),
        sequence: found.sequence,
        ...(sequence !== null && {
          oldest_incomplete: interactionId({ channelId: id, sequence: sequence as ChannelSequence }),
        }),
      };
      return sendPage(reply, found.items, meta, found.sent);
    },
  );
}

/** Whether a client may continue after the end of the list. */
function isPolled({ order, after_sequence: sequence, created_after: time }: z.output<typeof listInteractionsQuery>) {
  return order === 'asc' || sequence !== undefined || time !== undefined;
}

function postRoute(app: HttpApp, { interactions, directories }: Channels): void {
  app.post(
    '/api/v1/channels/:id/interactions',
    writes(
      {
        operationId: 'postInteraction',
        summary: 'Post an interaction, complete or to be completed later',
        params: channelParams,
        body: postInteractionBody,
        response,
      },
      OF_CHANNEL,
      {
        ownField({ principal: { organizationId }, params }: FastifyRequest, commandId: EntityId) {
          const { id: channelId } = params as z.output<typeof channelParams>;
          return ownSpan({ organizationId, channelId }, commandId);
        },
      },
    ),
    async (request, reply) => {
      const context = commandContext(request);
      const channelId = request.params.id;
      const post = await interactionToPost(context, request.body, {
        directories,
        writer: request.principal,
      });
      const { document, revision } = accepted(await interactions.submit(context, channelId, post), request, channelId);
      setPosition(request, reply, { stream: streamName(CHANNEL, channelId), revision });
      return sendJson(reply, document);
    },
  );
}

function changeRoutes(app: HttpApp, { interactions, queries }: Channels): void {
  const options = { params: interactionParams, response };
  app.post(
    '/api/v1/interactions/:interaction_id/content',
    writes(
      {
        operationId: 'appendInteractionContent',
        summary: 'Add content to an incomplete interaction',
        body: appendContentBody,
        ...options,
      },
      OF_INTERACTION,
    ),
    (request, reply) =>
      answerChange(request, reply, queries, (context, ref) => {
        const { content } = request.body;
        requireAddable(request.principal, content);
        return interactions.append(context, ref, content, request.principal);
      }),
  );
  app.post(
    '/api/v1/interactions/:interaction_id/complete',
    writes(
      {
        operationId: 'completeInteraction',
        summary: 'Complete an incomplete interaction',
        body: completeInteractionBody,
        ...options,
      },
      OF_INTERACTION,
    ),
    (request, reply) =>
      answerChange(request, reply, queries, (context, ref) => {
        const { content } = request.body;
        requireAddable(request.principal, content ?? []);
        return interactions.complete(context, ref, content ?? null, request.principal);
      }),
  );
  app.post(
    '/api/v1/interactions/:interaction_id/fail',
    writes(
      {
        operationId: 'failInteraction',
        summary: 'Fail an incomplete interaction',
        body: failInteractionBody,
        ...options,
      },
      OF_INTERACTION,
    ),
    (request, reply) =>
      answerChange(request, reply, queries, (context, ref) => {
        const { principal, body } = request;
        return interactions.fail(context, ref, body.reason, principal.isMember ? principal : 'operator');
      }),
  );
}

/** Runs a command on an interaction, and answers with the interaction as the caller sees it. */
export async function answerChange(
  request: FastifyRequest<{ Params: { interaction_id: string } }>,
  reply: FastifyReply,
  queries: InteractionQueries,
  run: (context: CommandContext, ref: InteractionRef) => Promise<InteractionResult>,
): Promise<FastifyReply> {
  const ref = requireInteractionRef(request.params.interaction_id);
  const { document, revision } = accepted(await run(commandContext(request), ref), request, ref.channelId);
  const { organizationId } = request.principal;
  const read = () => queries.annotate(organizationId, ref, Buffer.from(document), readerOf(request.principal));
  return sendChanged(request, reply, ref, revision, read);
}

function accepted(result: InteractionResult, request: FastifyRequest, channelId: EntityId) {
  if (!result.ok) throw interactionError(result.rejection, { channelId, body: request.body });
  return result;
}

/**
 * Answers a command that was accepted with the interaction that `read` finds.
 *
 * @throws `Fault` `outcome_unknown` if it cannot be read: the command may be repeated
 */
export async function sendChanged(
  request: FastifyRequest,
  reply: FastifyReply,
  { channelId }: InteractionRef,
  revision: StreamRevision,
  read: () => Promise<Buffer | null>,
): Promise<FastifyReply> {
  const document = await read().catch((error: unknown) => {
    throw faultAfterWrite(error);
  });
  // The interaction exists, so Redis lacks it.
  if (document === null) throw faultAfterWrite(storeUnavailable('Redis'));
  setPosition(request, reply, { stream: streamName(CHANNEL, channelId), revision });
  return sendJson(reply, document);
}

/** The commands of sockets: the same as `POST /api/v1/channels/{id}/interactions`. */
export function interactionLiveCommands({ interactions, directories }: Channels): readonly LiveCommandType[] {
  return [
    liveCommand({
      type: 'interaction.post',
      summary: 'Post an interaction, complete or to be completed later',
      data: postInteractionBody,
      isDurable: true,
      ownField: ({ context: { organizationId, commandId }, channelId }) =>
        ownSpan({ organizationId, channelId }, commandId),
      async run({ context, principal: writer, channelId, data }) {
        const post = await interactionToPost(context, data, { directories, writer });
        const result = await interactions.submit(context, channelId, post);
        if (!result.ok) throw interactionError(result.rejection, { channelId, body: data });
        return post.update === null ? result.revision : null;
      },
    }),
  ];
}
