import type { FastifyReply, FastifyRequest } from 'fastify';

import { unreachable } from '#libs/kernel/decider.ts';
import { conflict, etagOf, invalid, notFound, sendJson, setPosition } from '#libs/platform/http/index.ts';
import { streamName } from '#libs/platform/readmodel/index.ts';

import { MAX_PARTICIPANTS, MAX_PARTICIPANTS_BYTES } from './channel.decider.ts';
import type { ChannelRejection } from './channel.decider.ts';
import { CHANNEL } from './channel.events.ts';
import type { ChannelResult } from './channels.commands.ts';
import { channelResource } from './channels.projection.ts';

/** Answers a command with the channel as it left it. */
export function sendChannel(request: FastifyRequest, reply: FastifyReply, result: ChannelResult): FastifyReply {
  if (!result.ok) throw errorOf(result.rejection, request.body);
  const { channel, revision } = result;
  setPosition(request, reply, { stream: streamName(CHANNEL, channel.id), revision });
  void reply.header('etag', etagOf(channel.changedRevision));
  return sendJson(reply, JSON.stringify(channelResource(channel)));
}

/** @param body the input of an error is taken from it */
function errorOf(rejection: ChannelRejection, body: unknown): Error {
  switch (rejection.reason) {
    case 'not_found':
    case 'participant_not_found':
      return notFound();
    case 'archived':
      return conflict('The channel is archived', 'archived');
    case 'parent_archived':
      return conflict('The parent channel is archived', 'archived');
    case 'parent_not_found':
      return invalidMember(body, 'parent_channel_id', 'the organization has no such channel');
    case 'origin_not_found':
      return invalidMember(body, 'origin_message_id', 'the parent channel has no such interaction');
    case 'too_many_participants':
      return conflict(
        `A channel has at most ${MAX_PARTICIPANTS} participants, with ${MAX_PARTICIPANTS_BYTES / 1024} KiB of details`,
        'too_many_participants',
      );
    default:
      return unreachable(rejection);
  }
}

function invalidMember(body: unknown, name: string, message: string): Error {
  const input: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, name) : null;
  return invalid(['body', name], message, input);
}
