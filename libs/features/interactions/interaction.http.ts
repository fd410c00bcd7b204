import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';

import { CHANNEL } from '#libs/features/channels/index.ts';
import { faultAfterWrite } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import {
  commandContext,
  notFound,
  openPage,
  readPast,
  sendJson,
  sendPage,
  setPosition,
} from '#libs/platform/http/index.ts';
import type { HttpApp, Principal } from '#libs/platform/http/index.ts';
import { streamName } from '#libs/platform/readmodel/index.ts';

import type { InteractionCommands, InteractionResult } from './interaction.commands.ts';
import type { InteractionPlace } from './interaction.id.ts';
import { interactionError, interactionToPost, refuseUpdates, requirePlace } from './interaction.requests.ts';
import type { InteractionDirectory } from './interaction.requests.ts';
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

export interface InteractionRouteParts {
  readonly commands: InteractionCommands;
  readonly queries: InteractionQueries;
  readonly directory: InteractionDirectory;
}

const tags = ['interactions'];
const read = { scope: 'read' };
const write = { scope: 'write' };

/** Declares the routes of interactions: reads first, then commands. */
export function interactionRoutes(app: HttpApp, parts: InteractionRouteParts): void {
  readRoute(app, parts);
  listRoute(app, parts);
  postRoute(app, parts);
  changeRoutes(app, parts);
}

function readRoute(app: HttpApp, { queries }: InteractionRouteParts): void {
  app.get(
    '/api/v1/interactions/:interaction_id',
    {
      config: read,
      schema: {
        operationId: 'getInteraction',
        summary: 'Read an interaction',
        tags,
        params: interactionParams,
        querystring: readInteractionQuery,
        response: { 200: interactionSchema },
      },
    },
    async (request, reply) => {
      const { organizationId } = request.principal;
      const place = requirePlace(request.params.interaction_id);
      const { as_of: asOf, include_incomplete: includeIncomplete } = request.query;
      const includeToolCallUpdates = request.query.include_tool_call_updates;
      const shown = { reader: readerOf(request.principal), includeIncomplete };
      const read = () =>
        queries.at(organizationId, place.channelId, asOf, async (view) => {
          const interaction = await queries.interaction(organizationId, place, shown, view);
          if (interaction === null || !request.query.include_nested_interactions) return interaction;
          return queries.nested(organizationId, place, interaction, { ...shown, includeToolCallUpdates }, view);
        });
      const found = await (asOf === undefined ? read() : readPast(request, reply, read));
      if (found === null) throw notFound();
      return sendJson(reply, found);
    },
  );
}

function listRoute(app: HttpApp, { queries }: InteractionRouteParts): void {
  app.get(
    '/api/v1/channels/:id/interactions',
    {
      config: read,
      schema: {
        operationId: 'listInteractions',
        summary: "List a channel's interactions, by sequence",
        tags,
        params: channelParams,
        querystring: listInteractionsQuery,
        response: { 200: interactionPageSchema },
      },
    },
    async (request, reply) => {
      const { size: _size, page: _page, cursor: _cursor, ...query } = request.query;
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
        includeToolCallUpdates: query.include_tool_call_updates,
      };
      const { organizationId } = request.principal;
      const read = () =>
        queries.at(organizationId, id, query.as_of, (view) =>
          queries.list(organizationId, id, filter, page, readerOf(request.principal), view),
        );
      const found = await (query.as_of === undefined ? read() : readPast(request, reply, read));
      if (found === null) throw notFound();
      return sendPage(reply, found.items, page.meta(found));
    },
  );
}

function postRoute(app: HttpApp, { commands, directory }: InteractionRouteParts): void {
  app.post(
    '/api/v1/channels/:id/interactions',
    {
      config: write,
      schema: {
        operationId: 'postInteraction',
        summary: 'Post an interaction, complete or to be completed later',
        tags,
        params: channelParams,
        body: postInteractionBody,
        response: { 200: interactionSchema },
      },
    },
    async (request, reply) => {
      const context = commandContext(request);
      const channelId = request.params.id;
      const post = await interactionToPost(context, request.body, { directory, writer: request.principal });
      const result = await commands.submit(context, channelId, post);
      return sendInteraction(request, reply, channelId, result);
    },
  );
}

function changeRoutes(app: HttpApp, { commands, queries }: InteractionRouteParts): void {
  const content = {
    path: 'content',
    operationId: 'appendInteractionContent',
    summary: 'Add content to an incomplete interaction',
    body: appendContentBody,
  };
  changeRoute(app, queries, content, ({ context, place, body, writer }) => {
    refuseUpdates(body.content);
    return commands.append(context, place, body.content, writer);
  });
  const complete = {
    path: 'complete',
    operationId: 'completeInteraction',
    summary: 'Complete an incomplete interaction',
    body: completeInteractionBody,
  };
  changeRoute(app, queries, complete, ({ context, place, body, writer }) => {
    refuseUpdates(body.content ?? []);
    return commands.complete(context, place, body.content ?? null, writer);
  });
  const fail = {
    path: 'fail',
    operationId: 'failInteraction',
    summary: 'Fail an incomplete interaction',
    body: failInteractionBody,
  };
  changeRoute(app, queries, fail, ({ context, place, body }) => commands.fail(context, place, body.reason));
}

/** Declares a route that changes an interaction, and answers with it as the caller sees it. */
function changeRoute<Body extends z.ZodType>(
  app: HttpApp,
  queries: InteractionQueries,
  { path, ...described }: { readonly path: string; operationId: string; summary: string; body: Body },
  change: (request: {
    readonly context: CommandContext;
    readonly place: InteractionPlace;
    readonly body: z.output<Body>;
    readonly writer: Principal;
  }) => Promise<InteractionResult>,
): void {
  const schema = { ...described, tags, params: interactionParams, response: { 200: interactionSchema } };
  app.post(`/api/v1/interactions/:interaction_id/${path}`, { config: write, schema }, async (request, reply) => {
    const place = requirePlace(request.params.interaction_id);
    const { principal } = request;
    // Validated by the schema, whose type the compiler cannot resolve here.
    const body = request.body as z.output<Body>;
    const result = await change({ context: commandContext(request), place, body, writer: principal });
    if (!result.ok) return sendInteraction(request, reply, place.channelId, result);
    const stored = Buffer.from(result.document);
    const { organizationId } = principal;
    const document = await queries
      .annotate(organizationId, place, stored, readerOf(principal))
      .catch((error: unknown) => {
        throw faultAfterWrite(error);
      });
    return sendInteraction(request, reply, place.channelId, { ...result, document });
  });
}

function sendInteraction(
  request: FastifyRequest,
  reply: FastifyReply,
  channelId: EntityId,
  result: InteractionResult,
): FastifyReply {
  if (!result.ok) throw interactionError(result.rejection, { channelId, body: request.body });
  setPosition(request, reply, { stream: streamName(CHANNEL, channelId), revision: result.revision });
  return sendJson(reply, result.document);
}
