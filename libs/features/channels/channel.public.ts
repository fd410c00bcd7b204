/*
 * WARNING: what other teams read from Kafka. Members may be added; what is there keeps its name and its meaning.
 */
import { z } from 'zod';

import { unreachable } from '#libs/kernel/decider.ts';
import type { StreamEvent } from '#libs/kernel/event.ts';
import { publicEvents } from '#libs/platform/live/index.ts';
import type { EventContent, EventDescription } from '#libs/platform/live/index.ts';

import { channelResource, participantResource } from './channel.read.ts';
import { channelSchema, participantSchema } from './channel.schemas.ts';
import { channelCodec, channelFold } from './channel.ts';
import type { ChannelEvent } from './channel.ts';

const participantId = z.string().describe('Id of the participant record');
const changedChannel = channelSchema
  .pick({ name: true, meta_data: true, agent_invocation_behavior: true })
  .partial()
  .extend({ id: z.string() })
  .meta({ id: 'ChangedChannel' });
const joined = z
  .object({ channel_id: z.string(), participant_id: participantId, participant: participantSchema })
  .meta({ id: 'JoinedParticipant' });
const left = z.object({ channel_id: z.string(), participant_id: participantId }).meta({ id: 'LeftParticipant' });
const archived = z.object({ id: z.string() }).meta({ id: 'ArchivedChannel' });

const described: readonly EventDescription[] = [
  { type: 'channel.created', summary: 'A channel was created: its first event', data: channelSchema },
  { type: 'channel.updated', summary: 'The properties that are present changed', data: changedChannel },
  { type: 'channel.archived', summary: 'The channel was archived: its last event', data: archived },
  { type: 'participant.joined', summary: 'A participant joined the channel', data: joined },
  { type: 'participant.left', summary: 'A participant left the channel', data: left },
];

/** A channel's own events as Kafka publishes them: what each holds by itself, without the events before it. */
export const publicChannelEvents = publicEvents({ codec: channelCodec, described, publish });

function publish(event: StreamEvent<ChannelEvent>, id: string): EventContent {
  const { type, data } = contentOf(event, id);
  return { type, json: JSON.stringify(data) };
}

function contentOf(
  event: StreamEvent<ChannelEvent>,
  id: string,
): { readonly type: string; readonly data: object | null } {
  switch (event.type) {
    case 'ChannelCreated.v1': {
      const channel = channelFold.evolve(null, event);
      return { type: 'channel.created', data: channel && channelResource(channel) };
    }
    case 'ChannelRenamed.v1':
      return { type: 'channel.updated', data: { id, name: event.data.name } };
    case 'ChannelMetaDataChanged.v1':
      return { type: 'channel.updated', data: { id, meta_data: event.data.metaData } };
    case 'AgentInvocationBehaviorChanged.v1': {
      const { agentInvocationBehavior } = event.data;
      return { type: 'channel.updated', data: { id, agent_invocation_behavior: agentInvocationBehavior } };
    }
    case 'ChannelArchived.v1':
      return { type: 'channel.archived', data: { id } };
    case 'ParticipantAdded.v1': {
      const { participant } = event.data;
      const { participantId: joinedAs } = participant;
      const data = { channel_id: id, participant_id: joinedAs, participant: participantResource(participant) };
      return { type: 'participant.joined', data };
    }
    case 'ParticipantRemoved.v1':
      return { type: 'participant.left', data: { channel_id: id, participant_id: event.data.participantId } };
    default:
      return unreachable(event);
  }
}
