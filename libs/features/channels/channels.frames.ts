import { unreachable } from '#libs/kernel/decider.ts';
import { FRAME_FLAG } from '#libs/platform/live/index.ts';
import type { EventContent } from '#libs/platform/live/index.ts';
import type { ProjectedEvent } from '#libs/platform/readmodel/index.ts';

import type { ChannelState } from './channel.decider.ts';
import type { ChannelEvent, Participant } from './channel.events.ts';
import { channelResource, participantResource } from './channels.projection.ts';

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
