import type { FastifyReply, FastifyRequest } from 'fastify';

import { commandContext, type HttpApp, routesTagged } from '#libs/platform/http/index.ts';

import { sendChannel } from '../channel/channel.http.ts';
import type { Channels } from '../channels.ts';
import { channelSchema } from '../channel/channel.resource.ts';
import { answerChange } from './interaction.http.ts';
import { OF_INTERACTION, requireAddable, requireInteractionRef } from './interaction.requests.ts';
import { editInteractionBody, interactionParams, interactionSchema } from './interaction.schemas.ts';

const { writes } = routesTagged('interactions');
const response = { 200: interactionSchema };

/** Declares the routes by which senders edit and delete their messages, and participants pin interactions. */
export function messageRoutes(app: HttpApp, channels: Channels): void {
  editRoutes(app, channels);
  pinRoutes(app, channels);
}

function editRoutes(app: HttpApp, { messages, queries }: Channels): void {
  const options = { params: interactionParams, response };
  app.patch(
    '/api/v1/interactions/:interaction_id',
    writes(
      {
        operationId: 'editInteraction',
        summary: "Replace the content of one's own complete message",
        description: 'The message keeps its place, and `edited_at` says when. No agent is asked again.',
        body: editInteractionBody,
        ...options,
      },
      OF_INTERACTION,
    ),
    (request, reply) =>
      answerChange(request, reply, queries, (context, ref) => {
        const { content } = request.body;
        requireAddable(request.principal, content);
        return messages.edit(context, ref, content, request.principal);
      }),
  );
  app.delete(
    '/api/v1/interactions/:interaction_id',
    writes(
      {
        operationId: 'deleteInteraction',
        summary: "Delete the content of one's own complete message",
        description:
          'What remains is its place, sender and time, with `deleted_at`. Reads of the past, event streams and websockets no longer show the content; the log keeps it.',
        ...options,
      },
      OF_INTERACTION,
    ),
    (request, reply) =>
      answerChange(request, reply, queries, (context, ref) => messages.delete(context, ref, request.principal)),
  );
}

/** Every participant may pin; the answer is the channel, as its frame is. */
function pinRoutes(app: HttpApp, channels: Channels): void {
  const path = '/api/v1/interactions/:interaction_id/pin';
  const change = async (
    request: FastifyRequest<{ Params: { interaction_id: string } }>,
    reply: FastifyReply,
    isPinned: boolean,
  ) => {
    const ref = requireInteractionRef(request.params.interaction_id);
    return sendChannel(request, reply, channels, await channels.pin(commandContext(request), ref, isPinned));
  };
  const options = { params: interactionParams, response: { 200: channelSchema } };
  app.put(
    path,
    writes({ operationId: 'pinInteraction', summary: 'Pin an interaction to its channel', ...options }, OF_INTERACTION),
    (request, reply) => change(request, reply, true),
  );
  app.delete(
    path,
    writes({ operationId: 'unpinInteraction', summary: 'Unpin an interaction', ...options }, OF_INTERACTION),
    (request, reply) => change(request, reply, false),
  );
}
