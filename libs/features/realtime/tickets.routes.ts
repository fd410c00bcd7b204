import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';

import { idParam, refuseIfMatch, sendJson } from '#libs/platform/http/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';

import { listenerGrant } from './listener-access.ts';
import type { ListenedChannels } from './listener-access.ts';
import type { Tickets } from './realtime.ports.ts';

export interface TicketRouteParts {
  readonly tickets: Tickets;
  readonly channels: ListenedChannels;
}

const channelParams = z.object({ id: idParam('Id of the channel') });

const ticketSchema = z
  .object({
    value: z.string().describe('The ticket: opens one connection, once'),
    expires_at: z.string().describe('One minute after its creation'),
    channel_id: z.string().describe('The channel that it grants access to'),
  })
  .meta({ id: 'WebsocketTicket' });

/**
 * Declares the routes that make tickets. An `Idempotency-Key` is not looked at: a ticket that was used or is
 * too old helps nobody, and a secret is not kept where answers are.
 */
export function ticketRoutes(app: HttpApp, parts: TicketRouteParts): void {
  const common = { tags: ['channels'], params: channelParams, response: { 200: ticketSchema } };
  const config = { scope: 'read', ignoresIdempotencyKey: true };

  async function answer(request: FastifyRequest<{ Params: { id: string } }>, reply: FastifyReply) {
    const grant = await listenerGrant(request.principal, request.params.id, parts.channels);
    const { value, expiresAt } = await parts.tickets.issue(grant);
    void reply.header('cache-control', 'no-store');
    return sendJson(reply, JSON.stringify({ value, expires_at: expiresAt, channel_id: grant.channelId }));
  }

  app.post(
    '/api/v1/channels/:id/websocket_ticket',
    {
      config,
      preHandler: refuseIfMatch,
      schema: {
        operationId: 'createWebsocketTicket',
        summary: 'Create a ticket that opens a websocket on a channel, within a minute',
        description: 'What goes over the websocket is described in `/asyncapi.json`.',
        ...common,
      },
    },
    answer,
  );

  app.post(
    '/api/v1/channels/:id/websocket_tickets',
    {
      config,
      preHandler: refuseIfMatch,
      schema: {
        operationId: 'createWebsocketTicketAlias',
        summary: 'The same under its other name',
        ...common,
      },
    },
    answer,
  );
}
