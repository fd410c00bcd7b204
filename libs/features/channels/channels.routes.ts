import {
  commandContext,
  notFound,
  notModified,
  openPage,
  readPast,
  sendJson,
  sendPage,
} from '#libs/platform/http/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';

import type { ChannelCommands } from './channels.commands.ts';
import { channelToCreate } from './channels.inputs.ts';
import type { UserDirectory } from './channels.inputs.ts';
import type { ChannelQueries } from './channels.queries.ts';
import { sendChannel } from './channels.replies.ts';
import {
  channelPageSchema,
  channelParams,
  channelSchema,
  createChannelBody,
  listChannelsQuery,
  readChannelQuery,
  updateChannelBody,
} from './channels.schemas.ts';

export interface ChannelRouteParts {
  readonly commands: ChannelCommands;
  readonly queries: ChannelQueries;
  readonly users: UserDirectory;
}

const tags = ['channels'];
const read = { scope: 'read' };
const write = { scope: 'write' };

/** Declares the routes of channels: reads first, then commands. */
export function channelRoutes(app: HttpApp, parts: ChannelRouteParts): void {
  readRoutes(app, parts);
  commandRoutes(app, parts);
}

function readRoutes(app: HttpApp, { queries }: ChannelRouteParts): void {
  app.get(
    '/api/v1/channels',
    {
      config: read,
      schema: {
        operationId: 'listChannels',
        summary: 'List channels, newest first',
        tags,
        querystring: listChannelsQuery,
        response: { 200: channelPageSchema },
      },
    },
    async (request, reply) => {
      const { size: _size, page: _page, cursor: _cursor, is_owner: isOwner, ...query } = request.query;
      const page = openPage(request, request.query, { ...query, is_owner: isOwner });
      // Every channel that an organization can see is one of its own.
      if (isOwner === false) return sendPage(reply, [], page.meta({ total: 0, hasNext: false, last: null }));
      const { channel_type: channelType, parent_channel_id: parentChannelId, ...others } = query;
      const filter = { ...others, channelType, parentChannelId };
      const found = await queries.list(request.principal.organizationId, filter, page);
      const items = found.documents.map((document) => document.json);
      return sendPage(reply, items, page.meta(found));
    },
  );

  app.get(
    '/api/v1/channels/:id',
    {
      config: read,
      schema: {
        operationId: 'getChannel',
        summary: 'Read a channel, now or as it was',
        tags,
        params: channelParams,
        querystring: readChannelQuery,
        response: { 200: channelSchema },
      },
    },
    async (request, reply) => {
      const { organizationId } = request.principal;
      const { id } = request.params;
      const { as_of: asOf } = request.query;
      const found = await (asOf === undefined
        ? queries.channel(organizationId, id)
        : readPast(request, reply, () => queries.channelAt(organizationId, id, asOf)));
      if (found === null) throw notFound();
      // The revision is that of what is shown, so the tag names the same bytes whichever way they were asked for.
      if (notModified(request, reply, found.revision)) return reply;
      return sendJson(reply, found.json);
    },
  );
}

function commandRoutes(app: HttpApp, { commands, users }: ChannelRouteParts): void {
  app.post(
    '/api/v1/channels',
    {
      config: write,
      schema: {
        operationId: 'createChannel',
        summary: 'Create a channel or a thread',
        tags,
        body: createChannelBody,
        response: { 200: channelSchema },
      },
    },
    async (request, reply) => {
      const context = commandContext(request);
      const channel = await channelToCreate(context, request.body, users);
      return sendChannel(request, reply, await commands.create(context, channel));
    },
  );

  app.patch(
    '/api/v1/channels/:id',
    {
      config: write,
      schema: {
        operationId: 'updateChannel',
        summary: 'Update a channel of the organization',
        tags,
        params: channelParams,
        body: updateChannelBody,
        response: { 200: channelSchema },
      },
    },
    async (request, reply) => {
      const { name, meta_data: metaData, agent_invocation_behavior: agentInvocationBehavior } = request.body;
      const changes = { name, metaData, agentInvocationBehavior };
      const context = commandContext(request);
      return sendChannel(request, reply, await commands.update(context, request.params.id, changes));
    },
  );

  app.post(
    '/api/v1/channels/:id/archive',
    {
      config: write,
      schema: {
        operationId: 'archiveChannel',
        summary: 'Archive a channel: it can be read and no longer changed',
        description: 'Incomplete interactions in it fail. No thread can be created below it; those that exist go on.',
        tags,
        params: channelParams,
        response: { 200: channelSchema },
      },
    },
    async (request, reply) => {
      const result = await commands.archive(commandContext(request), request.params.id);
      return sendChannel(request, reply, result);
    },
  );
}
