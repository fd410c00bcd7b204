/**
 * What a channel's events make of it, as REST should answer it: written a second time, from the contract
 * and not from the feature's code, so that a checker does not share the mistakes of what it checks.
 * Knows the events and the participants that the load of the tests makes.
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
    case 'ParticipantAdded.v1':
      return { ...changed, participants: [...participants, external(asRecord(event.data['participant']))] };
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
    participants: participants.map((one) => external(asRecord(one))),
    created_at: metadata['at'],
    modified: metadata['at'],
    meta_data: data['metaData'],
    source: data['source'],
    agent_invocation_behavior: data['agentInvocationBehavior'],
    parent_channel_id: data['parentChannelId'],
    origin_message_id: data['originMessageId'],
  };
}

function participantsOf(channel: ChannelResource): unknown[] {
  return Array.isArray(channel['participants']) ? channel['participants'] : [];
}

function external(participant: Record<string, unknown>): object {
  if (participant['type'] !== 'external_agent') throw new TypeError(`not of the load: ${String(participant['type'])}`);
  return { type: 'external_agent', agent_metadata: participant['agentMetadata'] };
}
