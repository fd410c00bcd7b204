import { commandContext, notFound } from '#libs/platform/http/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';

import { participantToAdd } from './channels.inputs.ts';
import { participantResource } from './channels.projection.ts';
import { sendChannel } from './channels.replies.ts';
import type { ChannelRouteParts } from './channels.routes.ts';
import {
  channelParams,
  channelSchema,
  participantInput,
  participantListSchema,
  participantParams,
} from './channels.schemas.ts';

const tags = ['channels'];
const read = { scope: 'read' };
const write = { scope: 'write' };

/** Declares the routes of a channel's participants. */
export function participantRoutes(app: HttpApp, { commands, queries, users }: ChannelRouteParts): void {
  app.get(
    '/api/v1/channels/:id/participants',
    {
      config: read,
      schema: {
        operationId: 'listChannelParticipants',
        summary: 'List the participants, each with the id that removes it',
        tags,
        params: channelParams,
        response: { 200: participantListSchema },
      },
    },
    async (request) => {
      const participants = await queries.participants(request.principal.organizationId, request.params.id);
      if (participants === null) throw notFound();
      return {
        items: participants.map((participant) => ({
          participant_id: participant.participantId,
          participant: participantResource(participant),
        })),
      };
    },
  );

  app.post(
    '/api/v1/channels/:id/participants',
    {
      config: write,
      schema: {
        operationId: 'addChannelParticipant',
        summary: 'Add a participant; one who takes part already stays as it is',
        tags,
        params: channelParams,
        body: participantInput,
        response: { 200: channelSchema },
      },
    },
    async (request, reply) => {
      const context = commandContext(request);
      const { id } = request.params;
      const participant = await participantToAdd(context, request.body, users);
      const result = await commands.addParticipant(context, id, participant);
      return sendChannel(request, reply, result);
    },
  );

  app.delete(
    '/api/v1/channels/:id/participants/:participant_id',
    {
      config: write,
      schema: {
        operationId: 'removeChannelParticipant',
        summary: 'Remove a participant',
        tags,
        params: participantParams,
        response: { 200: channelSchema },
      },
    },
    async (request, reply) => {
      const { id, participant_id: participantId } = request.params;
      const context = commandContext(request);
      return sendChannel(request, reply, await commands.removeParticipant(context, id, participantId));
    },
  );
}
