/** Events of the channel itself, as sockets and event streams show them, and Kafka for other teams. */
import { z } from 'zod';

import { unreachable } from '#libs/kernel/decider.ts';
import type { ChannelSequence, StreamEvent } from '#libs/kernel/event.ts';
import { inSnakeCase } from '#libs/kernel/fields.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { FRAME_FLAG, type EventContent, type EventDescription } from '#libs/platform/live/index.ts';

import { interactionId } from '../interaction/interaction.id.ts';
import { channelEntity } from './channel.read.ts';
import { channelResource, channelSchema } from './channel.resource.ts';
import { type ChannelEvent, channelFold, type ChannelState } from './channel.ts';
import { type Participant, participantResource, participantSchema } from './participant.ts';

const TYPES = {
  'ChannelCreated.v1': 'channel.created',
  'ChannelRenamed.v1': 'channel.updated',
  'ChannelMetaDataChanged.v1': 'channel.updated',
  'AgentInvocationBehaviorChanged.v1': 'channel.updated',
  'RunConcurrencyChanged.v1': 'channel.updated',
  'ChannelChanged.v1': 'channel.updated',
  'ChannelArchived.v1': 'channel.archived',
  'InteractionPinned.v1': 'channel.updated',
  'InteractionUnpinned.v1': 'channel.updated',
  'ParticipantAdded.v1': 'participant.joined',
  'ParticipantRemoved.v1': 'participant.left',
  'FileDeleted.v1': 'file.deleted',
} as const satisfies Record<ChannelEvent['type'], string>;

const listedParticipant = z
  .intersection(
    z.object({ participant_id: z.string().describe('Id of the participant record, used to remove the participant') }),
    participantSchema,
  )
  .meta({ id: 'ListedParticipant' });

const deletedFile = z
  .object({
    channel_id: z.string(),
    media_id: z.string(),
    name: z.string(),
    sha256: z.string().nullable().describe('Of the content, in hex; null for an item without a file'),
    bytes: z.int(),
    interaction_id: z.string().nullable().describe('The interaction that shows the file; null if it was never posted'),
  })
  .meta({ id: 'DeletedFile' });
const fileDeleted: EventDescription = {
  type: 'file.deleted',
  summary: 'A file of the channel was deleted; the actor deleted it',
  data: deletedFile,
};

/** The frames of a channel's own events. */
export const channelEventTypes: readonly EventDescription[] = [
  { type: 'channel.created', summary: 'The channel was created: its first event', data: channelSchema },
  { type: 'channel.updated', summary: 'Properties of the channel changed', data: channelSchema },
  { type: 'channel.archived', summary: 'The channel was archived: its last event', data: channelSchema },
  { type: 'participant.joined', summary: 'A participant joined the channel', data: listedParticipant },
  { type: 'participant.left', summary: 'A participant left the channel', data: listedParticipant.nullable() },
  fileDeleted,
];

/** The frame of an event: the channel, or the participant, after it. */
export function channelFrame(
  event: StreamEvent<ChannelEvent>,
  before: ChannelState,
  after: ChannelState,
): EventContent {
  const type = TYPES[event.type];
  if (event.type === 'ParticipantAdded.v1') {
    const { participant } = event.data;
    const flags = participant.type === 'authenticated_user' ? FRAME_FLAG.access : 0;
    return { type, json: JSON.stringify(listed(participant)), flags };
  }
  if (event.type === 'ParticipantRemoved.v1') {
    const { participantId } = event.data;
    const removed = before?.participants.find((one) => one.participantId === participantId);
    return { type, json: JSON.stringify(removed ? listed(removed) : null), flags: FRAME_FLAG.access };
  }
  if (event.type === 'FileDeleted.v1') return channelMessage(event, after?.id ?? '');
  const json = after === null ? 'null' : channelEntity.json(after);
  switch (event.type) {
    case 'ChannelCreated.v1':
      return { type, json };
    case 'ChannelArchived.v1':
      return { type, json, flags: FRAME_FLAG.access | FRAME_FLAG.last };
    case 'InteractionPinned.v1':
    case 'InteractionUnpinned.v1':
      return { type, json, changed: ['pinned_interactions'] };
    default:
      return { type, json, changed: Object.keys(inSnakeCase(event.data)) };
  }
}

/** With the id of the record, which two of the four kinds of participants do not show. */
function listed(participant: Participant): object {
  return { participant_id: participant.participantId, ...participantResource(participant) };
}

/* WARNING: other teams read these messages from Kafka. Members may be added; existing ones keep name and meaning. */

const participantId = z.string().describe('Id of the participant record');
const changedChannel = channelSchema
  .pick({ name: true, meta_data: true, agent_invocation_behavior: true, run_concurrency: true })
  .partial()
  .extend({
    id: z.string(),
    pinned: z.string().optional().describe('Id of the interaction that was pinned'),
    unpinned: z.string().optional(),
  })
  .meta({ id: 'ChangedChannel' });
const joined = z
  .object({ channel_id: z.string(), participant_id: participantId, participant: participantSchema })
  .meta({ id: 'JoinedParticipant' });
const left = z.object({ channel_id: z.string(), participant_id: participantId }).meta({ id: 'LeftParticipant' });
const archived = z.object({ id: z.string() }).meta({ id: 'ArchivedChannel' });

export const channelMessageTypes: readonly EventDescription[] = [
  { type: 'channel.created', summary: 'A channel was created: its first event', data: channelSchema },
  { type: 'channel.updated', summary: 'The properties that are present changed', data: changedChannel },
  { type: 'channel.archived', summary: 'The channel was archived: its last event', data: archived },
  { type: 'participant.joined', summary: 'A participant joined the channel', data: joined },
  { type: 'participant.left', summary: 'A participant left the channel', data: left },
  fileDeleted,
];

/** The message of an event: what the event alone states, without the events before it. */
export function channelMessage(event: StreamEvent<ChannelEvent>, id: EntityId): EventContent {
  return { type: TYPES[event.type], json: JSON.stringify(publicData(event, id)) };
}

function publicData(event: StreamEvent<ChannelEvent>, id: EntityId): object | null {
  switch (event.type) {
    case 'ChannelCreated.v1': {
      const channel = channelFold.evolve(null, event);
      return channel && channelResource(channel);
    }
    case 'ChannelRenamed.v1':
    case 'ChannelMetaDataChanged.v1':
    case 'AgentInvocationBehaviorChanged.v1':
    case 'RunConcurrencyChanged.v1':
    case 'ChannelChanged.v1':
      return { id, ...inSnakeCase(event.data) };
    case 'InteractionPinned.v1':
    case 'InteractionUnpinned.v1': {
      const interaction = interactionId({ channelId: id, sequence: event.data.sequence as ChannelSequence });
      return event.type === 'InteractionPinned.v1' ? { id, pinned: interaction } : { id, unpinned: interaction };
    }
    case 'ChannelArchived.v1':
      return { id };
    case 'ParticipantAdded.v1': {
      const { participant } = event.data;
      const resource = participantResource(participant);
      return { channel_id: id, participant_id: participant.participantId, participant: resource };
    }
    case 'ParticipantRemoved.v1':
      return { channel_id: id, participant_id: event.data.participantId };
    case 'FileDeleted.v1': {
      const { mediaId, name, hash, bytes, interactionId } = event.data;
      return { channel_id: id, media_id: mediaId, name, sha256: hash, bytes, interaction_id: interactionId };
    }
    default:
      return unreachable(event);
  }
}
