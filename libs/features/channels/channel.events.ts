/*
 * These names and shapes are the storage format: what was written with them stays in the log for ever.
 * Never change one in place. A new version is a new type, the old one moves to channel.events.history.ts
 * with an upcaster.
 */
import { z } from 'zod';

import { defineEvents } from '#libs/platform/eventstore/index.ts';
import type { EventOf } from '#libs/platform/eventstore/index.ts';

/** Category of the streams: everything that happens in a channel is in `channel-<id>`. */
export const CHANNEL = 'channel';

/** The version goes up when what any feature stores of a channel changes its shape: it rebuilds all of it. */
export const CHANNEL_READ_MODEL = { category: CHANNEL, version: 1 } as const;

export const communicationType = z.enum(['websocket', 'messenger_a', 'messenger_b', 'messenger_c', 'sms']);
export const channelType = z.enum(['chat', 'collaboration', 'multi_org_chat', 'thread']);
export const channelSource = z.enum(['app_main', 'app_two', 'app_three', 'health']);
export const agentInvocationBehavior = z.enum([
  'at_mentions_only',
  'all_messages',
  'all_messages_personal_agent',
  'intelligent',
]);

const stringMap = z.record(z.string(), z.string());
const jsonMap = z.record(z.string(), z.unknown());

/** A participant as it was when it joined; details are those of that moment. */
export const participant = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('authenticated_user'),
    participantId: z.string(),
    userId: z.string(),
    displayName: z.string(),
    imageUrl: z.string().nullable(),
    isOwner: z.boolean(),
  }),
  z.object({
    type: z.literal('non_authenticated_user'),
    participantId: z.string(),
    userMetadata: stringMap.nullable(),
  }),
  z.object({
    type: z.literal('agent'),
    participantId: z.string(),
    agentId: z.string(),
    name: z.string(),
    description: z.string(),
    isActive: z.boolean(),
    imageUrl: z.string().nullable(),
    personality: z.string(),
    website: z.string().nullable(),
    agentCapabilities: z.string().nullable(),
    agentUrl: z.string().nullable(),
    agentAddress: z.string().nullable(),
    agentHandle: z.string().nullable(),
    isVerified: z.boolean(),
    allowHtmlResponses: z.boolean(),
  }),
  z.object({
    type: z.literal('external_agent'),
    participantId: z.string(),
    agentMetadata: stringMap.nullable(),
  }),
]);
export type Participant = z.infer<typeof participant>;

export const channelCodec = defineEvents({
  'ChannelCreated.v1': z.object({
    id: z.string(),
    type: communicationType,
    channelType,
    name: z.string(),
    participants: z.array(participant),
    metaData: jsonMap.nullable(),
    source: channelSource.nullable(),
    agentInvocationBehavior: agentInvocationBehavior.nullable(),
    parentChannelId: z.string().nullable(),
    originMessageId: z.string().nullable(),
  }),
  'ChannelRenamed.v1': z.object({ name: z.string() }),
  /** Replaces the whole map. */
  'ChannelMetaDataChanged.v1': z.object({ metaData: jsonMap.nullable() }),
  'AgentInvocationBehaviorChanged.v1': z.object({ agentInvocationBehavior: agentInvocationBehavior.nullable() }),
  'ParticipantAdded.v1': z.object({ participant }),
  'ParticipantRemoved.v1': z.object({ participantId: z.string() }),
  'ChannelArchived.v1': z.object({}),
});

export type ChannelEvent = EventOf<typeof channelCodec>;
export type ChannelCreated = Extract<ChannelEvent, { type: 'ChannelCreated.v1' }>['data'];
