import { z } from 'zod';

import { mayActAs } from '#libs/kernel/acting.ts';
import { unreachable } from '#libs/kernel/decider.ts';
import { faultAfterWrite } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import {
  commandContext,
  forbidden,
  type HttpApp,
  idReference,
  invalid,
  invalidBody,
  notFound,
  OF_CHANNEL,
  type Principal,
  requireMayActAs,
  routesTagged,
  setPosition,
} from '#libs/platform/http/index.ts';
import { streamName } from '#libs/platform/streams/index.ts';

import { channelParams } from '../channel/channel.schemas.ts';
import type { Channels } from '../channels.ts';
import { readMarkerSchema, shownMarker } from '../channel/channel.resource.ts';
import { READ_MARKER } from './read-marker.ts';
import type { CountedMarker, MoveRejection, ReadMarkers } from './read-marker.read.ts';

const { reads, writes } = routesTagged('channels');
const response = { 200: readMarkerSchema };

const userId = idReference({
  description: 'The participant; another one than the caller needs the scope `impersonate`. Default: the calling user',
}).nullish();
const markerQuery = z.object({ user_id: userId });
const moveBody = z
  .object({
    sequence: z
      .int()
      .min(1)
      .describe('Of the last event of the channel that the user has seen, such as `sequence` of an interaction'),
    user_id: userId,
  })
  .meta({ id: 'ReadMarkerMove', examples: [{ sequence: 42 }] });
const markerListSchema = z.object({ items: z.array(shownMarker) }).meta({ id: 'ReadMarkerList' });

/** Declares the routes of read markers: reads first, then the command. */
export function readMarkerRoutes(app: HttpApp, channels: Pick<Channels, 'usersOf'>, markers: ReadMarkers): void {
  readRoutes(app, channels, markers);
  moveRoute(app, markers);
}

function readRoutes(app: HttpApp, channels: Pick<Channels, 'usersOf'>, markers: ReadMarkers): void {
  app.get(
    '/api/v1/channels/:id/read_marker',
    reads(
      {
        operationId: 'getReadMarker',
        summary: 'Read how far a participant has read in a channel, and the number of messages after that',
        params: channelParams,
        querystring: markerQuery,
        response,
      },
      OF_CHANNEL,
    ),
    async ({ principal, params: { id }, query }) => {
      const { organizationId } = principal;
      const user = markedUser(principal, 'query', query.user_id);
      const users = await channels.usersOf(organizationId, id);
      if (users === null) throw notFound();
      if (!users.has(user)) throw notAParticipant();
      return markers.one(organizationId, user, id);
    },
  );

  app.get(
    '/api/v1/channels/:id/read_markers',
    reads(
      {
        operationId: 'listReadMarkers',
        summary: 'List how far each user that takes part in a channel has read',
        params: channelParams,
        response: { 200: markerListSchema },
      },
      OF_CHANNEL,
    ),
    async ({ principal, params: { id } }) => {
      const items = await markers.ofParticipants(principal.organizationId, id);
      if (items === null) throw notFound();
      return { items };
    },
  );
}

function moveRoute(app: HttpApp, markers: ReadMarkers): void {
  app.put(
    '/api/v1/channels/:id/read_marker',
    writes(
      {
        operationId: 'moveReadMarker',
        summary: 'Move the read marker of a participant forward; has no effect if it is further already',
        description: 'All devices of the user share the marker, and those that follow the channel receive it.',
        params: channelParams,
        body: moveBody,
        response,
      },
      OF_CHANNEL,
    ),
    async (request, reply) => {
      const { principal, body, params } = request;
      const { organizationId } = principal;
      const move = {
        channelId: params.id,
        userId: markedUser(principal, 'body', body.user_id),
        sequence: body.sequence,
      };
      const result = await markers.move(commandContext(request), move);
      if (!result.ok) throw errorOf(result.rejection, body);
      const { entity, revision } = result;
      setPosition(request, reply, { stream: streamName(READ_MARKER, entity.id), revision });
      try {
        const marker = await markers.one(organizationId, move.userId, move.channelId);
        await markers.publish(organizationId, marker);
        return marker;
      } catch (error) {
        throw faultAfterWrite(error);
      }
    },
  );
}

function errorOf({ reason }: MoveRejection, body: object): Error {
  switch (reason) {
    case 'not_found':
      return notFound();
    case 'not_a_participant':
      return notAParticipant();
    case 'not_reached':
      return invalidBody(body, 'sequence', 'the channel has not reached this sequence');
    default:
      return unreachable(reason);
  }
}

function notAParticipant(): Error {
  return forbidden('Only users that take part in the channel have a read marker', 'not_a_participant');
}

/** @throws HttpError 403; ValidationFailure 422 for a service that names no user */
function markedUser(caller: Principal, where: 'body' | 'query', id: EntityId | null | undefined): EntityId {
  if (typeof id === 'string') {
    requireMayActAs(caller, { type: 'user', id });
    return id;
  }
  if (caller.principalType === 'user') return caller.principalId;
  throw invalid([where, 'user_id'], 'only users have read markers, and the key is that of a service', id ?? null);
}

/** The user whose read markers a list shows. @throws ValidationFailure 422 */
export function readerOfList(principal: Principal, participant: EntityId | undefined): EntityId {
  if (participant !== undefined && mayActAs(principal, { type: 'user', id: participant })) return participant;
  if (principal.principalType === 'user') return principal.principalId;
  const problem = 'only users have read markers, and the key is that of a service: name a `participant`';
  throw invalid(['query', 'include_unread'], problem, true);
}

/** The JSON of a channel with a member more. */
export function withMarker(channel: Buffer, marker: CountedMarker | undefined): Buffer {
  if (marker === undefined) return channel;
  return Buffer.concat([channel.subarray(0, -1), Buffer.from(`,"read_marker":${JSON.stringify(marker)}}`)]);
}
