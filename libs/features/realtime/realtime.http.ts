import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';

import { Fault } from '#libs/kernel/faults.ts';
import {
  HttpError,
  idParam,
  invalid,
  JSON_TYPE,
  notFound,
  queryInteger,
  refuseIfMatch,
  sendJson,
  text,
} from '#libs/platform/http/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';

import { grantOf } from './access.ts';
import type { ChannelUsers } from './access.ts';
import { asyncApiDocument } from './asyncapi.ts';
import type { DescribedProtocol } from './asyncapi.ts';
import { EventStream } from './event-stream.ts';
import { include, maskOf } from './frames.ts';
import type { RealtimeNode } from './realtime-node.ts';
import type { Tickets } from './tickets.ts';

const params = z.object({ id: idParam('Id of the channel') });
type WithId = { Params: { id: string } };

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
    expires_at: z.string().describe('One minute after its creation'),
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
  async function answer(request: FastifyRequest<WithId>, reply: FastifyReply) {
    const grant = await grantOf(request.principal, request.params.id, channels);
    const { value, expiresAt } = await tickets.issue(grant);
    void reply.header('cache-control', 'no-store');
    return sendJson(reply, JSON.stringify({ value, expires_at: expiresAt, channel_id: grant.channelId }));
  }
  function declare(path: string, described: { operationId: string; summary: string; description?: string }): void {
    app.post(
      `/api/v1/channels/:id/${path}`,
      {
        config: { scope: 'read', ignoresIdempotencyKey: true },
        preHandler: refuseIfMatch,
        schema: { ...described, tags: ['channels'], params, response: { 200: ticketSchema } },
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
  after: queryInteger({
    min: 0,
    description: 'Sequence of the last event received (0: from the beginning). Default: only new events',
  }).optional(),
  include: text({
    pattern: new RegExp(`^(${WORDS})(,(${WORDS}))*$`),
    description: `Optional frames to receive, separated by commas: ${include.options.join(', ')}`,
  }).optional(),
});

/** One event of the stream: tools for event streams apply the schema to each event. */
const serverSentEvent = z
  .object({
    id: z.string().optional().describe('Sequence of the event in the channel; absent for frames that are not events'),
    event: z
      .enum(['message', 'close'])
      .optional()
      .describe('`close`: the last event, whose `data` contains the close code and the reason'),
    data: z.string().describe('JSON, as in `/asyncapi.json`'),
  })
  .meta({ id: 'ServerSentEvent' });

type StreamRequest = FastifyRequest<WithId & { Querystring: z.output<typeof querystring> }>;

/** Declares the event stream of a channel, and the answer of a websocket's address to requests without an upgrade. */
export function eventStreamRoutes(
  app: HttpApp,
  { node, channels }: { readonly node: RealtimeNode; readonly channels: ChannelUsers },
): void {
  app.get(
    '/api/v1/channels/:id/events',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'streamChannelEvents',
        summary: 'Stream the events of a channel as server-sent events',
        description:
          'The `data` of each is the `event` frame of the websocket protocol (see `/asyncapi.json`); its `id` is the ' +
          'sequence. A client that reconnects with `Last-Event-ID` misses no events.',
        tags: ['channels'],
        params,
        querystring,
        response: {
          200: { description: 'Server-sent events', content: { 'text/event-stream': { schema: serverSentEvent } } },
          204: z.null().describe('The channel is archived, and the client has received all of its events'),
        },
      },
    },
    (request, reply) => openEventStream(request, reply, node, channels),
  );

  app.get('/api/v1/channels/:id/websocket', { config: { public: true }, schema: { hide: true, params } }, () => {
    throw new HttpError(426, 'upgrade_required', 'This address is for websockets', { upgrade: 'websocket' });
  });
}

async function openEventStream(
  request: StreamRequest,
  reply: FastifyReply,
  node: RealtimeNode,
  channels: ChannelUsers,
): Promise<FastifyReply> {
  if (!acceptsStreams(request.headers.accept)) {
    throw new HttpError(406, 'not_acceptable', 'This is a stream of type text/event-stream');
  }
  const after = lastSeen(request);
  const grant = await grantOf(request.principal, request.params.id, channels);
  if (node.isStopping) throw stopping();
  const channel = await node.channels.open(grant.organizationId, grant.channelId);
  if (channel === null) throw notFound();
  if (after !== undefined && !(await channel.reaches(after))) {
    throw invalid(['query', 'after'], 'the channel has not reached this sequence yet', after);
  }
  // Meanwhile the node may have stopped, the channel been closed, or the client have left.
  if (node.isStopping || !channel.isOpen) throw stopping();
  if (reply.raw.destroyed) return reply.hijack();
  const position = after ?? channel.head;
  // The only response after which a browser does not reconnect.
  if (channel.hasEnded && position >= channel.head) return reply.code(204).send();
  // Fastify calls the handler of GET for HEAD, too, whose response would never end.
  if (request.method === 'HEAD') return reply.headers(HEADERS).send();
  sendHead(reply);
  const included = request.query.include?.split(',').map((word) => include.parse(word)) ?? [];
  new EventStream(node, { grant, channel, include: maskOf(included) }, reply.raw).open(position);
  return reply;
}

function stopping(): Fault {
  return new Fault('stopping', 'This process is stopping', { retryAfterSeconds: 2 });
}

function acceptsStreams(accept: string | undefined): boolean {
  return accept === undefined || /(text\/(event-stream|\*)|\*\/\*)/i.test(accept);
}

/** `Last-Event-ID` takes precedence: a browser repeats the first URL, with `after`, when it reconnects. */
function lastSeen({ headers, query }: StreamRequest): number | undefined {
  const header = headers['last-event-id'];
  if (header === undefined || header === '') return query.after;
  const sequence = typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : undefined;
  if (sequence === undefined) throw invalid(['header', 'last-event-id'], 'this is no sequence', header);
  return sequence;
}

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  // A proxy that compresses would delay the events.
  'cache-control': 'no-store, no-transform',
  // Turns off the buffering of nginx.
  'x-accel-buffering': 'no',
};

/** Takes over the response from Fastify, with the headers set so far. */
function sendHead(reply: FastifyReply): void {
  void reply.headers(HEADERS).hijack();
  reply.raw.writeHead(
    200,
    Object.fromEntries(Object.entries(reply.getHeaders()).map(([name, value]) => [name, value])),
  );
  reply.raw.flushHeaders();
}
