import { unreachable } from '#libs/kernel/decider.ts';
import { encodeDocument, listMember } from '#libs/platform/readmodel/index.ts';
import type { Projection } from '#libs/platform/readmodel/index.ts';

import { channelFold } from './channel.decider.ts';
import type { Channel, ChannelState } from './channel.decider.ts';
import { CHANNEL_READ_MODEL, channelCodec } from './channel.events.ts';
import type { ChannelEvent, Participant } from './channel.events.ts';

export const channelProjection: Projection<ChannelState, ChannelEvent> = {
  ...CHANNEL_READ_MODEL,
  codec: channelCodec,
  fold: channelFold,
  project({ organizationId, id, after }, keys) {
    if (after === null) return { operations: [], lists: [] };
    return {
      operations: [
        { command: 'SET', key: keys.document, args: [encodeDocument(after.changedRevision, channelResource(after))] },
      ],
      lists: [
        {
          owner: organizationId,
          member: listMember(after.createdAt, id),
          facets: channelFacets(after),
        },
      ],
    };
  },
};

/** What a list of channels can be narrowed by. */
export interface ChannelFilter {
  readonly archived: boolean;
  readonly type?: string | undefined;
  readonly channelType?: string | undefined;
  readonly source?: string | undefined;
  readonly agent?: string | undefined;
  readonly parentChannelId?: string | undefined;
}

/** Facets of the channels that match; each names the archive too, so that one filter is one index. */
export function facetsOfFilter(filter: ChannelFilter): [string, ...string[]] {
  const base = filter.archived ? 'archived' : 'open';
  const [first, ...others] = facetsOf({
    type: filter.type,
    channel_type: filter.channelType,
    source: filter.source,
    agent: filter.agent,
    parent: filter.parentChannelId,
  }).map((facet) => `${base}:${facet}`);
  return first === undefined ? [base] : [first, ...others];
}

function channelFacets(channel: Channel): string[] {
  const base = channel.archivedAt === null ? 'open' : 'archived';
  const facets = facetsOf({
    type: channel.type,
    channel_type: channel.channelType,
    source: channel.source,
    parent: channel.parentChannelId,
  });
  for (const one of channel.participants) if (one.type === 'agent') facets.push(`agent=${one.agentId}`);
  return [base, ...facets.map((facet) => `${base}:${facet}`)];
}

function facetsOf(values: Record<string, string | null | undefined>): string[] {
  return Object.entries(values).flatMap(([name, value]) => (typeof value === 'string' ? [`${name}=${value}`] : []));
}

/** The channel as the API answers it (contract, section 2.1). */
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
  };
}

/** A participant as the API answers it (contract, section 2.2, detail forms). */
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
        organization: null,
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
