/* Channels and read markers as the API returns them (contract, sections 2.1 and 2.2). */
import { z } from 'zod';

import type { ChannelSequence } from '#libs/kernel/event.ts';
import { shownFields } from '#libs/kernel/fields.ts';
import { pageMetaSchema, shownTime } from '#libs/platform/http/index.ts';

import { interactionId } from '../interaction/interaction.id.ts';
import {
  agentInvocationBehavior,
  type Channel,
  channelSource,
  channelType,
  communicationType,
  runConcurrency,
} from './channel.ts';
import { participantResource, participantSchema } from './participant.ts';

export const concurrency = runConcurrency
  .nullable()
  .describe(
    'What a message of a user does to runs that answer earlier ones: with `queue`, and null, it is answered after them; `restart` cancels them',
  );

export const shownMarker = z
  .object({
    user_id: z.string(),
    sequence: z
      .int()
      .min(0)
      .describe(
        'Sequence of the channel up to which the user has read: that of its marker or of its last message, whichever is higher. Where `unread_count` is shown, also that of its joining',
      ),
    moved_at: shownTime().nullable().describe('When the marker was last moved; null if it never was'),
  })
  .meta({ id: 'ParticipantReadMarker' });

export const readMarkerSchema = z
  .object({
    channel_id: z.string(),
    ...shownMarker.shape,
    unread_count: z
      .int()
      .min(0)
      .describe('Messages of other users and of agents that were complete after the sequence, without deleted ones'),
  })
  .meta({ id: 'ReadMarker' });

const channelFields = shownFields<Channel>()({
  id: z.string(),
  type: communicationType,
  channel_type: channelType,
  name: z.string(),
  participants: [z.array(participantSchema), ({ participants }) => participants.map(participantResource)],
  created_at: shownTime(),
  modified: shownTime(),
  meta_data: z.record(z.string(), z.unknown()).nullable(),
  source: channelSource.nullable(),
  agent_invocation_behavior: agentInvocationBehavior.nullable(),
  parent_channel_id: z.string().nullable(),
  origin_message_id: z.string().nullable(),
  run_concurrency: concurrency,
  owner_id: z.string().nullable().describe('The user that administers the channel'),
  pinned_interactions: [
    z
      .array(
        z
          .object({
            interaction_id: z.string(),
            pinned_at: shownTime(),
            pinned_by: z.object({ type: z.string(), id: z.string() }),
          })
          .meta({ id: 'PinnedInteraction' }),
      )
      .optional()
      .describe('In the order in which they were pinned. Absent if nothing ever was'),
    ({ id: channelId, pinned }) =>
      pinned?.map(({ sequence, at, by }) => ({
        interaction_id: interactionId({ channelId, sequence: sequence as ChannelSequence }),
        pinned_at: at,
        pinned_by: by,
      })),
  ],
});

/** The channel as the API returns it. */
export const channelResource = channelFields.resource;

export const channelSchema = z
  .object({
    ...channelFields.shape,
    read_marker: readMarkerSchema.optional().describe('In lists with `include_unread`'),
  })
  .meta({ id: 'Channel' });

export const channelPageSchema = z
  .object({ items: z.array(channelSchema), meta: pageMetaSchema })
  .meta({ id: 'ChannelPage' });

/** Participants with the ids of their records, which the contract shows for two kinds only. */
export const participantListSchema = z
  .object({ items: z.array(z.object({ participant_id: z.string(), participant: participantSchema })) })
  .meta({ id: 'ChannelParticipantList' });
