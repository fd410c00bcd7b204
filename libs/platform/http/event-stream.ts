/** Responses of server-sent events (HTML standard, "Server-sent events"), of channels and of other entities. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';

import { HttpError, invalid } from './errors.ts';
import { queryInteger } from './validation/schemas.ts';

export const eventStreamQuery = {
  after: queryInteger({
    min: 0,
    description: 'Sequence of the last event received (0: from the beginning). Default: only new events',
  }).optional(),
};

/** The schema of an event: tools for event streams apply it to each event of the stream. */
const serverSentEvent = z
  .object({
    id: z.string().optional().describe('Sequence of the event; absent for frames that are not events'),
    event: z
      .string()
      .optional()
      .describe('`close`: the last event, whose `data` contains the close code and the reason'),
    data: z.string().describe('JSON, as in `/asyncapi.json`'),
  })
  .meta({ id: 'ServerSentEvent' });

/** The `response` of the schema of a route that answers with an event stream. */
export const eventStreamResponse = {
  200: { description: 'Server-sent events', content: { 'text/event-stream': { schema: serverSentEvent } } },
  410: z
    .object({
      detail: z.string(),
      code: z.literal('gone'),
      first_sequence: z.int().nullable().describe('Of the first event that is left'),
      request_id: z.string(),
    })
    .describe('The events after `after` were deleted in the event store'),
  204: z.null().describe('There will be no more events, and the client has received all of them'),
};

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  // A proxy that compresses would delay the events.
  'cache-control': 'no-store, no-transform',
  // Turns off the buffering of nginx.
  'x-accel-buffering': 'no',
};

/** @throws HttpError 406 for a client that accepts no event streams */
export function requireEventStreams({ headers: { accept } }: FastifyRequest): void {
  if (accept === undefined || /(text\/(event-stream|\*)|\*\/\*)/i.test(accept)) return;
  throw new HttpError(406, 'not_acceptable', 'This is a stream of type text/event-stream');
}

/**
 * Sequence of the last event that the client has seen. `Last-Event-ID` takes precedence: a browser repeats the first
 * URL, with `after`, when it reconnects.
 *
 * @throws ValidationFailure
 */
export function lastSeenSequence({ headers }: FastifyRequest, after: number | undefined): number | undefined {
  const header = headers['last-event-id'];
  if (header === undefined || header === '') return after;
  const sequence = typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : undefined;
  if (sequence === undefined) throw invalid(['header', 'last-event-id'], 'this is no sequence', header);
  return sequence;
}

export function sequenceNotReached(after: number): Error {
  return invalid(['query', 'after'], 'the stream has not reached this sequence yet', after);
}

/** The head alone: Fastify calls the handler of GET for HEAD, too, whose response would never end. */
export function sendEventStreamHead(reply: FastifyReply): FastifyReply {
  return reply.headers(HEADERS).send();
}

/** Takes over the response from Fastify, with the headers set so far. */
export function beginEventStream(reply: FastifyReply): void {
  reply.request.server.bodies.release(reply.request);
  void reply.headers(HEADERS).hijack();
  reply.raw.writeHead(200, Object.fromEntries(Object.entries(reply.getHeaders())));
  reply.raw.flushHeaders();
}
