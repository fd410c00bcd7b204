import type { FastifyReply, FastifyRequest } from 'fastify';

import type { EntityId } from '#libs/kernel/ids.ts';
import { EntityReplies, type RejectionErrors } from '#libs/platform/entity/index.ts';
import {
  commandContext,
  conflict,
  forbidden,
  type HttpApp,
  invalid,
  invalidBody,
  notFound,
  notModified,
  OF_CALLER,
  OF_CHANNEL,
  openPage,
  type Principal,
  readPast,
  routesTagged,
  sendJson,
  sendPage,
} from '#libs/platform/http/index.ts';
import { inCamelCase } from '#libs/kernel/fields.ts';

import { readerOfList, withMarker } from '../reading/read-marker.http.ts';
import type { ReadMarkers } from '../reading/read-marker.read.ts';
import type { ChannelAccess } from '../access.ts';
import type { ChannelResult, Channels } from '../channels.ts';
import { channelToCreate, participantToAdd } from './channel.requests.ts';
import {
  channelParams,
  createChannelBody,
  type CreateChannelBody,
  listChannelsQuery,
  participantInput,
  participantParams,
  readChannelQuery,
  updateChannelBody,
} from './channel.schemas.ts';
import { MAX_PARTICIPANTS, MAX_PARTICIPANTS_BYTES, MAX_PINNED, type ChannelRejection } from './channel.ts';
import { participantResource } from './participant.ts';
import { channelPageSchema, channelSchema, participantListSchema } from './channel.resource.ts';

type Access = Pick<ChannelAccess, 'admits' | 'admitted'>;
type Markers = Pick<ReadMarkers, 'of'>;

const { reads, writes } = routesTagged('channels');
const response = { 200: channelSchema };

/** Errors quote their input from `body`. */
const errors = (body: unknown): RejectionErrors<ChannelRejection> => ({
  participant_not_found: notFound,
  archived: () => conflict('The channel is archived', 'archived'),
  not_owner: () => forbidden('Only the owner of the channel may change it', 'not_owner'),
  parent_archived: () => conflict('The parent channel is archived', 'archived'),
  parent_not_found: () => invalidBody(body, 'parent_channel_id', 'the organization has no such channel'),
  origin_not_found: () => invalidBody(body, 'origin_message_id', 'the parent channel has no such interaction'),
  too_many_participants: () =>
    conflict(
      `A channel has at most ${MAX_PARTICIPANTS} participants, with ${MAX_PARTICIPANTS_BYTES / 1024} KiB of details`,
      'too_many_participants',
    ),
  interaction_not_found: notFound,
  too_many_pinned: () => conflict(`A channel has at most ${MAX_PINNED} pinned interactions`, 'too_many_pinned'),
});

/** Answers a command with the channel after it. */
export function sendChannel(
  request: FastifyRequest,
  reply: FastifyReply,
  { entities }: Channels,
  result: ChannelResult,
): FastifyReply | Promise<FastifyReply> {
  return new EntityReplies(entities, errors(request.body)).sendResult(request, reply, result);
}

/** Declares the routes of channels and their participants: reads first, then commands. */
export function channelRoutes(
  app: HttpApp,
  channels: Channels,
  { access, markers }: { readonly access: Access; readonly markers: Markers },
): void {
  listRoute(app, channels, access, markers);
  readRoute(app, channels);
  commandRoutes(app, channels, access);
  participantListRoute(app, channels);
  participantRoutes(app, channels);
}

function listRoute(app: HttpApp, channels: Channels, access: Access, markers: Markers): void {
  app.get(
    '/api/v1/channels',
    reads(
      {
        operationId: 'listChannels',
        summary: 'List channels, newest first',
        querystring: listChannelsQuery,
        response: { 200: channelPageSchema },
      },
      OF_CALLER,
    ),
    async (request, reply) => {
      const { size: _size, page: _page, cursor: _cursor, is_owner: isOwner, ...given } = request.query;
      const { include_unread: includesUnread, ...query } = given;
      const { principal } = request;
      const reader = includesUnread ? readerOfList(principal, query.participant) : null;
      // A member's list: the read model names candidates, and each is admitted by the log.
      const own = principal.isMember ? [principal.principalId] : [];
      if (reader !== null) own.push(reader);
      const asked = new Set([...own, ...(query.participant === undefined ? [] : [query.participant])]);
      // Absent without such a filter, as in cursors that a version without it has signed.
      const participant = asked.size > 0 ? [...asked] : undefined;
      const page = openPage(request, request.query, { ...query, participant, is_owner: isOwner });
      // An organization can read only channels that it owns.
      if (isOwner === false) return sendPage(reply, [], page.meta({ total: 0, hasNext: false, last: null }));
      const { channel_type: channelType, parent_channel_id: parentChannelId, ...others } = query;
      const filter = {
        ...others,
        channelType,
        parentChannelId,
        participant,
      };
      const found = await channels.list(principal.organizationId, filter, page);
      const admitted = principal.isMember ? await access.admitted(principal, found.ids) : null;
      const isShown = (id: EntityId): boolean => admitted?.has(id) ?? true;
      const items = found.documents.filter((_, index) => isShown(found.ids[index] ?? '')).map(({ json }) => json);
      if (reader === null) return sendPage(reply, items, page.meta(found));
      const read = await markers.of(principal.organizationId, reader, found.ids.filter(isShown));
      return sendPage(
        reply,
        items.map((json, index) => withMarker(json, read[index])),
        page.meta(found),
      );
    },
  );
}

function readRoute(app: HttpApp, channels: Channels): void {
  app.get(
    '/api/v1/channels/:id',
    reads(
      {
        operationId: 'getChannel',
        summary: 'Read a channel in its current state, or at a point in its history',
        params: channelParams,
        querystring: readChannelQuery,
        response,
      },
      OF_CHANNEL,
    ),
    async (request, reply) => {
      const { organizationId } = request.principal;
      const { id } = request.params;
      const { as_of: asOf } = request.query;
      const found = await (asOf === undefined
        ? channels.channel(organizationId, id)
        : readPast(request, reply, () => channels.channelAt(organizationId, id, asOf)));
      if (found === null) throw notFound();
      // This is the revision of the document, so the tag identifies the same bytes in reads of the past.
      if (notModified(request, reply, found.revision)) return reply;
      return sendJson(reply, found.json);
    },
  );
}

function commandRoutes(app: HttpApp, channels: Channels, access: Access): void {
  app.post(
    '/api/v1/channels',
    writes(
      {
        operationId: 'createChannel',
        summary: 'Create a channel or a thread',
        body: createChannelBody,
        response,
      },
      OF_CALLER,
    ),
    async (request, reply) => {
      const context = commandContext(request);
      const { principal, body } = request;
      if (principal.isMember) await requireMayCreate(principal, body, access);
      const channel = await channelToCreate(context, body, channels.directories);
      return sendChannel(request, reply, channels, await channels.create(context, channel));
    },
  );

  app.patch(
    '/api/v1/channels/:id',
    writes(
      {
        operationId: 'updateChannel',
        summary: 'Update a channel of the organization',
        params: channelParams,
        body: updateChannelBody,
        response,
      },
      OF_CHANNEL,
    ),
    async (request, reply) => {
      const { params, body } = request;
      const result = await channels.update(commandContext(request), params.id, inCamelCase(body));
      return sendChannel(request, reply, channels, result);
    },
  );

  app.post(
    '/api/v1/channels/:id/archive',
    writes(
      {
        operationId: 'archiveChannel',
        summary: 'Archive a channel, which makes it read-only',
        description: 'Fails its incomplete interactions. New threads are refused; existing ones stay open.',
        params: channelParams,
        response,
      },
      OF_CHANNEL,
    ),
    async (request, reply) => {
      const result = await channels.archive(commandContext(request), request.params.id);
      return sendChannel(request, reply, channels, result);
    },
  );
}

function participantListRoute(app: HttpApp, channels: Channels): void {
  app.get(
    '/api/v1/channels/:id/participants',
    reads(
      {
        operationId: 'listChannelParticipants',
        summary: 'List the participants of a channel, with the ids of their records',
        params: channelParams,
        response: { 200: participantListSchema },
      },
      OF_CHANNEL,
    ),
    async (request) => {
      const participants = await channels.participants(request.principal.organizationId, request.params.id);
      if (participants === null) throw notFound();
      return {
        items: participants.map((participant) => ({
          participant_id: participant.participantId,
          participant: participantResource(participant),
        })),
      };
    },
  );
}

function participantRoutes(app: HttpApp, channels: Channels): void {
  app.post(
    '/api/v1/channels/:id/participants',
    writes(
      {
        operationId: 'addChannelParticipant',
        summary:
          'Add a participant, with the details it has now; has no effect if the user or agent already participates',
        params: channelParams,
        body: participantInput,
        response,
      },
      OF_CHANNEL,
    ),
    async (request, reply) => {
      const context = commandContext(request);
      const { id } = request.params;
      const participant = await participantToAdd(context, request.body, channels.directories);
      const result = await channels.addParticipant(context, id, participant);
      return sendChannel(request, reply, channels, result);
    },
  );

  app.delete(
    '/api/v1/channels/:id/participants/:participant_id',
    writes(
      {
        operationId: 'removeChannelParticipant',
        summary: 'Remove a participant',
        params: participantParams,
        response,
      },
      OF_CHANNEL,
    ),
    async (request, reply) => {
      const { id, participant_id: participantId } = request.params;
      const context = commandContext(request);
      const result = await channels.removeParticipant(context, id, participantId);
      return sendChannel(request, reply, channels, result);
    },
  );
}

/**
 * A member takes part in the channels that it creates, owns them, and sees the channels that they are threads of.
 *
 * @throws HttpError 403; ValidationFailure 422, for a parent as for one that does not exist
 */
async function requireMayCreate(
  { organizationId, principalId }: Principal,
  body: CreateChannelBody,
  access: Access,
): Promise<void> {
  const { participants, parent_channel_id: parent, owner_id: owner } = body;
  if (owner != null && owner !== principalId)
    throw forbidden('A member owns the channels that it creates', 'not_owner');
  const takesPart = participants?.some((one) => one.type === 'authenticated_user' && one.user_id === principalId);
  if (takesPart === false) {
    throw invalid(['body', 'participants'], 'a member takes part in the channels that it creates', participants);
  }
  if (parent == null || (await access.admits({ organizationId, principalId }, parent))) return;
  throw errors(body).parent_not_found({ reason: 'parent_not_found' });
}
