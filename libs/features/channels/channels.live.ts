import { z } from 'zod';

import type { EventDescription } from '#libs/platform/live/index.ts';

import { channelSchema, participantSchema } from './channels.schemas.ts';

const participant = z
  .intersection(
    z.object({ participant_id: z.string().describe('Id of the participant record, by which it is removed') }),
    participantSchema,
  )
  .meta({ id: 'ListedParticipant' });

/** What listeners can be told of a channel's own events. */
export const channelEventTypes: readonly EventDescription[] = [
  { type: 'channel.created', summary: 'The channel was created: its first event', data: channelSchema },
  { type: 'channel.updated', summary: 'Its name, its data or its behaviour was changed', data: channelSchema },
  { type: 'channel.archived', summary: 'The channel was archived: its last event', data: channelSchema },
  { type: 'participant.joined', summary: 'Somebody takes part from now on', data: participant },
  { type: 'participant.left', summary: 'Somebody no longer takes part', data: participant.nullable() },
];
