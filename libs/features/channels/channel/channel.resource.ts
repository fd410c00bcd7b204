import { unreachable } from '#libs/kernel/decider.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';

import { interactionId } from '../interaction/interaction.id.ts';
import type { Channel, Participant } from './channel.ts';

/** The channel as the API returns it (contract, section 2.1). */
export function channelResource(channel: Channel): object {
  return {
    id: channel.id,
    type: channel.type,
    channel_type: channel.channelType,
    name: channel.name,
    participants: channel.participants.map(participantResource),
    created_at: channel.createdAt,
    modified: channel.modified,
    meta_data: channel.metaData,
    source: channel.source,
    agent_invocation_behavior: channel.agentInvocationBehavior,
    parent_channel_id: channel.parentChannelId,
    origin_message_id: channel.originMessageId,
    run_concurrency: channel.runConcurrency,
    owner_id: channel.ownerId,
    ...(channel.pinned !== undefined && {
      pinned_interactions: channel.pinned.map(({ sequence, at, by }) => ({
        interaction_id: interactionId({ channelId: channel.id, sequence: sequence as ChannelSequence }),
        pinned_at: at,
        pinned_by: by,
      })),
    }),
  };
}

/** A participant as the API returns it (contract, section 2.2, detail forms). */
export function participantResource(participant: Participant): object {
  switch (participant.type) {
    case 'authenticated_user':
      return {
        type: participant.type,
        user_id: participant.userId,
        id: participant.participantId,
        display_name: participant.displayName,
        image_url: participant.imageUrl,
        is_owner: participant.isOwner,
      };
    case 'non_authenticated_user':
      return { type: participant.type, user_metadata: participant.userMetadata };
    case 'external_agent':
      return { type: participant.type, agent_metadata: participant.agentMetadata };
    case 'agent':
      return {
        id: participant.agentId,
        chat_user_id: participant.participantId,
        type: participant.type,
        name: participant.name,
        description: participant.description,
        is_active: participant.isActive,
        organization: participant.organization ?? null,
        image_url: participant.imageUrl,
        personality: participant.personality,
        website: participant.website,
        agent_capabilities: participant.agentCapabilities,
        agent_url: participant.agentUrl,
        agent_address: participant.agentAddress,
        agent_handle: participant.agentHandle,
        is_verified: participant.isVerified,
        allow_html_responses: participant.allowHtmlResponses,
      };
    default:
      return unreachable(participant);
  }
}
