/*
 * The HTTP schemas of channels: the contract's sections 2.1 to 2.3 and 4.1, field by field.
 */
import { z } from 'zod';

import {
  idParam,
  idReference,
  jsonMap,
  pageQuery,
  queryBoolean,
  queryPointInHistory,
  stringMap,
  text,
} from '#libs/platform/http/index.ts';

import { agentInvocationBehavior, channelSource, channelType, communicationType, MAX_PARTICIPANTS } from './channel.ts';
import { concurrency } from './channel.resource.ts';

const name = text({ max: 256, description: 'Channel name' });
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
