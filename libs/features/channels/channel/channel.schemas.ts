/*
 * The HTTP schemas of channels: the contract's sections 2.1 to 2.3 and 4.1, field by field.
 */
import { z } from 'zod';

import {
  idParam,
  idReference,
  jsonMap,
  pageMetaSchema,
  pageQuery,
  queryBoolean,
  queryPointInHistory,
  stringMap,
  text,
  shownTime,
} from '#libs/platform/http/index.ts';
import { organizationSummary } from '#libs/features/organizations/index.ts';

import {
  agentInvocationBehavior,
  channelSource,
  channelType,
  communicationType,
  MAX_PARTICIPANTS,
  runConcurrency,
} from './channel.ts';

const name = text({ max: 256, description: 'Channel name' });
const concurrency = runConcurrency
  .nullable()
  .describe(
    'What a message of a user does to runs that answer earlier ones: with `queue`, and null, it is answered after them; `restart` cancels them',
  );

export const participantSchema = z
  .discriminatedUnion('type', [
    z
      .object({
        type: z.literal('authenticated_user'),
        user_id: z.string(),
        id: z.string().describe('Id of the participant record, used to remove the participant'),
        display_name: z.string(),
        image_url: z.string().nullable(),
        is_owner: z.boolean().describe('Whether the user belongs to the organization that owns the channel'),
      })
      .meta({ id: 'AuthenticatedUserParticipant' }),
    z
      .object({ type: z.literal('non_authenticated_user'), user_metadata: stringMap().nullable() })
      .meta({ id: 'NonAuthenticatedUserParticipant' }),
    z
      .object({
        id: z.string(),
        chat_user_id: z.string().describe('Id of the participant record, used to remove the participant'),
        type: z.literal('agent'),
        name: z.string().default(''),
        description: z.string().default(''),
        is_active: z.boolean().default(true),
        organization: organizationSummary.nullable(),
        image_url: z.string().nullable(),
        personality: z.string().default(''),
        website: z.string().nullable(),
        agent_capabilities: z.string().nullable(),
        agent_url: z.string().nullable(),
        agent_address: z.string().nullable(),
        agent_handle: z.string().nullable(),
        is_verified: z.boolean().default(false),
        allow_html_responses: z.boolean().default(false),
      })
      .meta({ id: 'AgentParticipant' }),
    z
      .object({ type: z.literal('external_agent'), agent_metadata: stringMap().nullable() })
      .meta({ id: 'ExternalAgentParticipant' }),
  ])
  .meta({ id: 'ChannelParticipant' });

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

export const channelSchema = z
  .object({
    id: z.string(),
    type: communicationType,
    channel_type: channelType,
    name: z.string(),
    participants: z.array(participantSchema),
    created_at: shownTime(),
    modified: shownTime(),
    meta_data: z.record(z.string(), z.unknown()).nullable(),
    source: channelSource.nullable(),
    agent_invocation_behavior: agentInvocationBehavior.nullable(),
    parent_channel_id: z.string().nullable(),
    origin_message_id: z.string().nullable(),
    run_concurrency: concurrency,
    owner_id: z.string().nullable().describe('The user that administers the channel'),
    pinned_interactions: z
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

/** A participant to add. Users and agents are looked up: details that the caller gives are ignored. */
export const participantInput = z
  .discriminatedUnion('type', [
    z
      .object({ type: z.literal('authenticated_user'), user_id: idReference() })
      .meta({ id: 'AuthenticatedUserParticipantAdd' }),
    z
      .object({ type: z.literal('non_authenticated_user'), user_metadata: stringMap().nullish() })
      .meta({ id: 'NonAuthenticatedUserParticipantAdd' }),
    z
      .object({ type: z.literal('agent'), id: idReference({ description: 'An active agent of the organization' }) })
      .meta({ id: 'AgentParticipantAdd' }),
    z
      .object({ type: z.literal('external_agent'), agent_metadata: stringMap().nullish() })
      .meta({ id: 'ExternalAgentParticipantAdd' }),
  ])
  .meta({ id: 'ChannelParticipantAdd', examples: [{ type: 'agent', id: '01a1ff85-0000-7000-8000-000000000000' }] });
export type ParticipantInput = z.infer<typeof participantInput>;

export const createChannelBody = z
  .object({
    name,
    type: communicationType.default('websocket'),
    channel_type: channelType.optional().describe('Default: `thread` with a `parent_channel_id`, otherwise `chat`'),
    participants: z.array(participantInput).max(MAX_PARTICIPANTS).optional().describe('Default: the calling user'),
    meta_data: jsonMap().nullish(),
    source: channelSource.nullish(),
    agent_invocation_behavior: agentInvocationBehavior.nullish(),
    parent_channel_id: idReference({ description: 'Creates the channel as a thread of this channel' }).nullish(),
    origin_message_id: idReference({
      description: 'Id of the interaction in the parent channel that starts the thread',
    }).nullish(),
    run_concurrency: concurrency.optional(),
    owner_id: idReference({
      description:
        'The user that administers the channel when it sees only channels in which it takes part. Default: the calling user',
    }).nullish(),
  })
  .meta({ id: 'ChannelCreate', examples: [{ name: 'Order 4711' }] });
export type CreateChannelBody = z.infer<typeof createChannelBody>;

/** Absent fields do not change, whatever default the contract specifies. */
export const updateChannelBody = z
  .object({
    name: name.optional(),
    meta_data: jsonMap().nullish(),
    agent_invocation_behavior: agentInvocationBehavior.nullish(),
    run_concurrency: concurrency.optional(),
  })
  .meta({ id: 'ChannelUpdate', examples: [{ name: 'Order 4711, delivered' }] });

export const channelParams = z.object({ id: idParam('Id of the channel') });

export const readChannelQuery = z.object({
  as_of: queryPointInHistory({
    description: 'Reads the channel as of this sequence (0: before its first event) or time',
  }).optional(),
});

export const participantParams = channelParams.extend({ participant_id: idParam('Id of the participant record') });

export const listChannelsQuery = z.object({
  ...pageQuery,
  type: communicationType.optional(),
  channel_type: channelType.optional(),
  source: channelSource.optional(),
  agent: idReference({ description: 'Only channels with this agent as a participant' }).optional(),
  participant: idReference({ description: 'Only channels in which this user takes part' }).optional(),
  parent_channel_id: idReference({ description: 'Only threads of this channel' }).optional(),
  include_unread: queryBoolean({
    default: false,
    description:
      'Adds `read_marker` of the calling user, and lists only channels in which it takes part. For a key that may act as the user of `participant`: of that user',
  }),
  is_owner: queryBoolean({ description: 'Only channels that the organization owns, or does not own' }).optional(),
  archived: queryBoolean({ default: false, description: 'Lists archived channels instead of open ones' }),
});
