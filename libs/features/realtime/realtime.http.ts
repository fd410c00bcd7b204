import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';

import { openLiveStream, sendEventStream } from '#libs/platform/entity/index.ts';
import {
  eventStreamQuery,
  eventStreamResponse,
  type HttpApp,
  HttpError,
  idParam,
  JSON_TYPE,
  MEMBER_SCOPES,
  OF_CHANNEL,
  refuseIfMatch,
  sendJson,
  text,
  shownTime,
} from '#libs/platform/http/index.ts';

import { type ChannelGrant, EventStream, type LiveStream } from '#libs/platform/live/index.ts';

import { grantOf, type ChannelUsers } from './access.ts';
import { asyncApiDocument, type DescribedProtocol } from './asyncapi.ts';
import { include, maskOf } from './frames.ts';
import type { RealtimeNode } from './realtime-node.ts';
import type { Tickets } from './tickets.ts';

const params = z.object({ id: idParam('Id of the channel') });
type WithId = { Params: { id: string } };

const ticketBody = z
  .object({
    scopes: z
      .array(z.enum(MEMBER_SCOPES))
      .min(1)
      .max(MEMBER_SCOPES.length)
      .optional()
      .describe('What the ticket is limited to, such as `read` alone. Default: all that the caller may do'),
  })
  .nullish()
  .meta({ id: 'WebsocketTicketRequest', examples: [{}] });

/** Declares `/asyncapi.json`, which is generated once. */
export function asyncApiRoute(app: HttpApp, protocol: DescribedProtocol): void {
  let document: Buffer | undefined;
  app.get('/asyncapi.json', { config: { public: true }, schema: { hide: true } }, (_request, reply) => {
    document ??= Buffer.from(JSON.stringify(asyncApiDocument(protocol)));
    void reply.type(JSON_TYPE).send(document);
  });
}

const ticketSchema = z
  .object({
    value: z.string().describe('The ticket: opens one connection, once'),
    expires_at: shownTime().describe('One minute after its creation'),
    channel_id: z.string().describe('The channel that it grants access to'),
  })
  .meta({ id: 'WebsocketTicket' });

/**
 * Declares the routes that create tickets. They ignore an `Idempotency-Key`: a stored response would contain a secret,
 * and its ticket might be used or expired.
 */
export function ticketRoutes(
  app: HttpApp,
  { tickets, channels }: { readonly tickets: Pick<Tickets, 'issue'>; readonly channels: ChannelUsers },
): void {
  async function answer(
    request: FastifyRequest<WithId & { Body: z.output<typeof ticketBody> }>,
    reply: FastifyReply,
  ): Promise<FastifyReply> {
    const grant = await grantOf(request.principal, request.params.id, channels);
    const { scopes: limit = grant.scopes } = request.body ?? {};
    const scopes = grant.scopes.filter((scope) => limit.includes(scope));
    const { value, expiresAt } = await tickets.issue({ ...grant, scopes });
    void reply.header('cache-control', 'no-store');
    return sendJson(reply, JSON.stringify({ value, expires_at: expiresAt, channel_id: grant.channelId }));
  }
  function declare(path: string, described: { operationId: string; summary: string; description?: string }): void {
    app.post(
      `/api/v1/channels/:id/${path}`,
      {
        config: { scope: 'read', members: OF_CHANNEL, ignoresIdempotencyKey: true },
        preHandler: refuseIfMatch,
        schema: { ...described, tags: ['channels'], params, body: ticketBody, response: { 200: ticketSchema } },
      },
      answer,
    );
  }

  declare('websocket_ticket', {
    operationId: 'createWebsocketTicket',
    summary: 'Create a ticket for opening a websocket on a channel within one minute',
    description: 'The frames of the websocket are described in `/asyncapi.json`.',
  });
  declare('websocket_tickets', {
    operationId: 'createWebsocketTicketAlias',
    summary: 'Alias of `createWebsocketTicket`',
  });
}

const WORDS = include.options.join('|');
const querystring = z.object({
  ...eventStreamQuery,
  include: text({
    pattern: new RegExp(`^(${WORDS})(,(${WORDS}))*$`),
    description: `Optional frames to receive, separated by commas: ${include.options.join(', ')}`,
  }).optional(),
});

/** Declares the event stream of a channel, and the answer of a websocket's address to requests without an upgrade. */
export function eventStreamRoutes(
  app: HttpApp,
  { node, channels }: { readonly node: RealtimeNode; readonly channels: ChannelUsers },
): void {
  app.get(
    '/api/v1/channels/:id/events',
    {
      config: { scope: 'read', members: OF_CHANNEL },
      schema: {
        operationId: 'streamChannelEvents',
        summary: 'Stream the events of a channel as server-sent events',
        description:
          'The `data` of each is the `event` frame of the websocket protocol (see `/asyncapi.json`); its `id` is the ' +
          'sequence. A client that reconnects with `Last-Event-ID` misses no events.',
        tags: ['channels'],
        params,
        querystring,
        response: eventStreamResponse,
      },
    },
    (request, reply) => {
      let grant: ChannelGrant;
      const open = async (after: number | undefined): Promise<LiveStream> => {
        grant = await grantOf(request.principal, request.params.id, channels);
        return openLiveChannel(node, grant, after);
      };
      const included = request.query.include?.split(',').map((word) => include.parse(word)) ?? [];
      return sendEventStream(
        request,
        reply,
        open,
        (stream) => new EventStream(node.live, { grant, stream, include: maskOf(included) }, reply.raw),
      );
    },
  );

  app.get('/api/v1/channels/:id/websocket', { config: { public: true }, schema: { hide: true, params } }, () => {
    throw new HttpError(426, 'upgrade_required', 'This address is for websockets', { upgrade: 'websocket' });
  });
}

/** See `openLiveStream`. */
export function openLiveChannel(
  { live, source }: RealtimeNode,
  { organizationId, channelId }: ChannelGrant,
  after: number | undefined,
): Promise<LiveStream> {
  return openLiveStream(live, source, { organizationId, id: channelId }, after);
}
