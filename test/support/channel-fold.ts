/**
 * Folds the events of a channel into the JSON that REST should answer. Written from the contract and not from the
 * feature's code, so that the checker does not repeat its mistakes. Knows only the events and participants that the
 * loads and histories of the tests make.
 */
import { asRecord, type LogEvent } from './log-reader.ts';

export type ChannelResource = Readonly<Record<string, unknown>>;

/** The channel after `events`, the first of which creates it. */
export function foldChannel(events: readonly LogEvent[]): ChannelResource {
  const [first, ...later] = events;
  if (first?.type !== 'ChannelCreated.v1') throw new TypeError(`${first?.stream} does not begin with its creation`);
  return later.reduce(evolve, created(first));
}

export function evolve(channel: ChannelResource, event: LogEvent): ChannelResource {
  const changed = { ...channel, modified: event.metadata['at'] };
  const participants = participantsOf(channel);
  switch (event.type) {
    case 'ChannelCreated.v1':
      return created(event);
    case 'ChannelRenamed.v1':
      return { ...changed, name: event.data['name'] };
    case 'ChannelMetaDataChanged.v1':
      return { ...changed, meta_data: event.data['metaData'] };
    case 'RunConcurrencyChanged.v1':
      return { ...changed, run_concurrency: event.data['runConcurrency'] };
    case 'ChannelChanged.v1':
      return {
        ...changed,
        ...('name' in event.data && { name: event.data['name'] }),
        ...('metaData' in event.data && { meta_data: event.data['metaData'] }),
        ...('runConcurrency' in event.data && { run_concurrency: event.data['runConcurrency'] }),
      };
    case 'FileDeleted.v1':
      return channel;
    case 'ParticipantAdded.v1':
      return { ...changed, participants: [...participants, participantOf(asRecord(event.data['participant']))] };
    case 'ParticipantRemoved.v1':
      return { ...changed, participants: without(participants, event.data['participantId']) };
    case 'ChannelArchived.v1':
      return changed;
    default:
      throw new TypeError(`the checker does not know ${event.type}`);
  }
}

export function created({ data, metadata }: LogEvent): ChannelResource {
  const participants: unknown[] = Array.isArray(data['participants']) ? data['participants'] : [];
  return {
    id: data['id'],
    type: data['type'],
    channel_type: data['channelType'],
    name: data['name'],
    participants: participants.map((one) => participantOf(asRecord(one))),
    created_at: metadata['at'],
    modified: metadata['at'],
    meta_data: data['metaData'],
    source: data['source'],
    agent_invocation_behavior: data['agentInvocationBehavior'],
    parent_channel_id: data['parentChannelId'],
    origin_message_id: data['originMessageId'],
    run_concurrency: null,
    owner_id: data['ownerId'] ?? userOf(metadata['actor']),
  };
}

/** The user that caused an event, if it was a user. */
function userOf(actor: unknown): unknown {
  const { type, id } = asRecord(actor);
  return type === 'user' ? id : null;
}

function participantsOf(channel: ChannelResource): unknown[] {
  return Array.isArray(channel['participants']) ? channel['participants'] : [];
}

function participantOf(participant: Record<string, unknown>): Record<string, unknown> {
  const { type, participantId: id } = participant;
  switch (type) {
    case 'external_agent':
      return { type, agent_metadata: participant['agentMetadata'] };
    case 'non_authenticated_user':
      return { type, user_metadata: participant['userMetadata'] };
    case 'authenticated_user':
      return {
        type,
        id,
        user_id: participant['userId'],
        display_name: participant['displayName'],
        image_url: participant['imageUrl'],
        is_owner: participant['isOwner'],
      };
    case 'agent':
      return {
        type,
        id: participant['agentId'],
        chat_user_id: id,
        organization: participant['organization'],
        name: participant['name'],
        description: participant['description'],
        is_active: participant['isActive'],
        image_url: participant['imageUrl'],
        personality: participant['personality'],
        website: participant['website'],
        agent_capabilities: participant['agentCapabilities'],
        agent_url: participant['agentUrl'],
        agent_address: participant['agentAddress'],
        agent_handle: participant['agentHandle'],
        is_verified: participant['isVerified'],
        allow_html_responses: participant['allowHtmlResponses'],
      };
    default:
      throw new TypeError(`the checker does not know participants of type ${String(type)}`);
  }
}

/** Only for participants that REST shows with an id: others cannot be told apart here. */
function without(participants: readonly unknown[], participantId: unknown): unknown[] {
  const left = participants.filter((one) => {
    const { type, id, chat_user_id: chatUserId } = asRecord(one);
    return (type === 'agent' ? chatUserId : id) !== participantId;
  });
  if (left.length !== participants.length - 1)
    throw new TypeError(`unknown participant removed: ${String(participantId)}`);
  return left;
}
