import { z } from 'zod';

import { unreachable } from '#libs/kernel/decider.ts';
import { FRAME_FLAG } from '#libs/platform/live/index.ts';
import type { EventContent, EventDescription } from '#libs/platform/live/index.ts';
import type { ProjectedEvent } from '#libs/platform/readmodel/index.ts';

import { channelResource, participantResource } from './channel.read.ts';
import { channelSchema, participantSchema } from './channel.schemas.ts';
import type { ChannelEvent, ChannelState, Participant } from './channel.ts';

const listedParticipant = z
  .intersection(
    z.object({ participant_id: z.string().describe('Id of the participant record, used to remove the participant') }),
    participantSchema,
  )
  .meta({ id: 'ListedParticipant' });

/** The frames of a channel's own events. */
export const channelEventTypes: readonly EventDescription[] = [
  { type: 'channel.created', summary: 'The channel was created: its first event', data: channelSchema },
  { type: 'channel.updated', summary: 'Properties of the channel changed', data: channelSchema },
  { type: 'channel.archived', summary: 'The channel was archived: its last event', data: channelSchema },
  { type: 'participant.joined', summary: 'A participant joined the channel', data: listedParticipant },
  { type: 'participant.left', summary: 'A participant left the channel', data: listedParticipant.nullable() },
];

interface Content {
  readonly type: string;
  readonly data: object | null;
  readonly flags?: number;
}

/** The frame of an event: the channel, or the participant, after it. */
export function channelFrame({ before, after, event }: ProjectedEvent<ChannelState, ChannelEvent>): EventContent {
  const { data, ...content } = contentOf(before, after, event);
  return { ...content, json: JSON.stringify(data) };
}

function contentOf(before: ChannelState, after: ChannelState, event: ChannelEvent): Content {
  switch (event.type) {
    case 'ChannelCreated.v1':
      return { type: 'channel.created', data: resource(after) };
    case 'ChannelRenamed.v1':
    case 'ChannelMetaDataChanged.v1':
    case 'AgentInvocationBehaviorChanged.v1':
      return { type: 'channel.updated', data: resource(after) };
    case 'ChannelArchived.v1':
      return { type: 'channel.archived', data: resource(after), flags: FRAME_FLAG.access | FRAME_FLAG.last };
    case 'ParticipantAdded.v1':
      return {
        type: 'participant.joined',
        data: listed(event.data.participant),
        flags: event.data.participant.type === 'authenticated_user' ? FRAME_FLAG.access : 0,
      };
    case 'ParticipantRemoved.v1': {
      const { participantId } = event.data;
      const gone = before?.participants.find((one) => one.participantId === participantId);
      return { type: 'participant.left', data: gone ? listed(gone) : null, flags: FRAME_FLAG.access };
    }
    default:
      return unreachable(event);
  }
}

function resource(channel: ChannelState): object | null {
  return channel && channelResource(channel);
}

/** With the id that removes it, which two of the four kinds of participants do not show. */
function listed(participant: Participant): object {
  return { participant_id: participant.participantId, ...participantResource(participant) };
}
