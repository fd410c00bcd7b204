import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';

import { Fault } from '#libs/kernel/faults.ts';
import { HttpError, idParam, invalid, notFound, queryInteger, text } from '#libs/platform/http/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';

import { EventStream } from './event-stream.ts';
import { include } from './frames.schemas.ts';
import { listenerGrant } from './listener-access.ts';
import type { ListenedChannels } from './listener-access.ts';
import type { RealtimeNode } from './realtime-node.ts';
import { maskOf } from './socket-session.ts';

export interface EventStreamRouteParts {
  readonly node: RealtimeNode;
  readonly channels: ListenedChannels;
}

const WORDS = include.options.join('|');
const params = z.object({ id: idParam('Id of the channel') });
const querystring = z.object({
  after: queryInteger({
    min: 0,
    description: 'Sequence of the last event seen (0: from the beginning); without it, only what is new',
  }).optional(),
  include: text({
    pattern: new RegExp(`^(${WORDS})(,(${WORDS}))*$`),
    description: `Of ${include.options.join(', ')}: what to send besides, separated by commas`,
  }).optional(),
});

/** Each event of the stream: tools that know event streams apply the schema to the events, one by one. */
const serverSentEvent = z
  .object({
    id: z.string().optional().describe('Sequence of the event in the channel; none for what leaves nothing there'),
    event: z
      .enum(['message', 'close'])
      .optional()
      .describe('`close`: the last one, `data` has the code and the reason'),
    data: z.string().describe('JSON, as in `/asyncapi.json`'),
  })
  .meta({ id: 'ServerSentEvent' });

type Request = FastifyRequest<{ Params: { id: string }; Querystring: z.output<typeof querystring> }>;

/** Declares the stream of a channel's events, and what a websocket's address answers to who opens none. */
export function eventStreamRoutes(app: HttpApp, { node, channels }: EventStreamRouteParts): void {
  app.get(
    '/api/v1/channels/:id/events',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'streamChannelEvents',
        summary: 'The events of a channel as they happen, as server-sent events',
        description:
          'Each has the `event` frame of the websocket protocol as `data` (see `/asyncapi.json`), and its sequence as ' +
          '`id`: a client that comes back with `Last-Event-ID` misses nothing.',
        tags: ['channels'],
        params,
        querystring,
        response: {
          200: { description: 'Server-sent events', content: { 'text/event-stream': { schema: serverSentEvent } } },
          204: z.null().describe('The channel is archived, and all of it was seen'),
        },
      },
    },
    async (request, reply) => {
      if (!acceptsStreams(request.headers.accept)) {
        throw new HttpError(406, 'not_acceptable', 'This is a stream of type text/event-stream');
      }
      const after = lastSeen(request);
      const grant = await listenerGrant(request.principal, request.params.id, channels);
      if (node.isStopping) throw stopping();
      const channel = await node.channels.open(grant.organizationId, grant.channelId);
      if (channel === null) throw notFound();
      if (after !== undefined && !(await channel.reaches(after))) {
        throw invalid(['query', 'after'], 'the channel has not come to this sequence yet', after);
      }
      // All that took a while: the node may have stopped, the channel been let go of, the client be gone.
      if (node.isStopping || !channel.isOpen) throw stopping();
      if (reply.raw.destroyed) return reply.hijack();
      const position = after ?? channel.head;
      // A browser takes this, and only this, for the end.
      if (channel.isArchived && position >= channel.head) return reply.code(204).send();
      // Fastify asks a GET's handler for HEAD, too: there is nothing that would ever end.
      if (request.method === 'HEAD') return reply.headers(HEADERS).send();
      begin(reply);
      const asked = request.query.include?.split(',').map((word) => include.parse(word)) ?? [];
      new EventStream(node, { grant, channel, include: maskOf(asked) }, reply.raw).open(position);
      return reply;
    },
  );

  app.get('/api/v1/channels/:id/websocket', { config: { public: true }, schema: { hide: true, params } }, () => {
    throw new HttpError(426, 'upgrade_required', 'This address is for websockets', { upgrade: 'websocket' });
  });
}

function stopping(): Fault {
  return new Fault('stopping', 'This process is stopping', { retryAfterSeconds: 2 });
}

function acceptsStreams(accept: string | undefined): boolean {
  return accept === undefined || /(text\/(event-stream|\*)|\*\/\*)/i.test(accept);
}

/** What a browser has seen since counts more than what it was told to begin with. */
function lastSeen({ headers, query }: Request): number | undefined {
  const header = headers['last-event-id'];
  if (header === undefined || header === '') return query.after;
  const sequence = typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : undefined;
  if (sequence === undefined) throw invalid(['header', 'last-event-id'], 'this is no sequence', header);
  return sequence;
}

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  // A proxy that compresses would hold back what is to go on at once.
  'cache-control': 'no-store, no-transform',
  // Asks nginx not to collect it either.
  'x-accel-buffering': 'no',
};

/** From here on the response is the stream's own. */
function begin(reply: FastifyReply): void {
  void reply.headers(HEADERS).hijack();
  reply.raw.writeHead(
    200,
    Object.fromEntries(Object.entries(reply.getHeaders()).map(([name, value]) => [name, value])),
  );
  reply.raw.flushHeaders();
}
