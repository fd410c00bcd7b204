/*
 * WARNING: the names and shapes of events are the storage format: the log keeps them forever. Never change one in place.
 * A new version is a new type, and the old one gets an upcaster.
 */
import { isDeepStrictEqual } from 'node:util';

import { z } from 'zod';

import type { Timestamp } from '#libs/kernel/clock.ts';
import { accept, refuse, type Decision, type Fold } from '#libs/kernel/decider.ts';
import { changedBy, createdBy, type EntityState } from '#libs/kernel/entity.ts';
import type { Actor } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';
import { type Participant, participant } from './participant.ts';

export const communicationType = z
  .enum(['websocket', 'messenger_a', 'messenger_b', 'messenger_c', 'sms'])
  .meta({ id: 'CommunicationType' });
export const channelType = z.enum(['chat', 'collaboration', 'multi_org_chat', 'thread']).meta({ id: 'ChannelType' });
export const channelSource = z.enum(['app_main', 'app_two', 'app_three', 'health']).meta({ id: 'ChannelSource' });
export const agentInvocationBehavior = z
  .enum(['at_mentions_only', 'all_messages', 'all_messages_personal_agent', 'intelligent'])
  .meta({ id: 'AgentInvocationBehavior' });

/** How a message treats the runs of an agent that answer earlier messages; null: `queue`. */
export const runConcurrency = z.enum(['queue', 'restart']).meta({ id: 'RunConcurrency' });
export type RunConcurrency = z.infer<typeof runConcurrency>;

const jsonMap = z.record(z.string(), z.unknown());

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
    /** The user that administers the channel. Absent before channels had owners: the user that created it. */
    ownerId: z.string().nullable().optional(),
  }),
  'ChannelRenamed.v1': z.object({ name: z.string() }),
  /** Replaces the whole map. */
  'ChannelMetaDataChanged.v1': z.object({ metaData: jsonMap.nullable() }),
  'AgentInvocationBehaviorChanged.v1': z.object({ agentInvocationBehavior: agentInvocationBehavior.nullable() }),
  'RunConcurrencyChanged.v1': z.object({ runConcurrency: runConcurrency.nullable() }),
  /** Two or more of these fields, changed by one command. */
  'ChannelChanged.v1': z.object({
    name: z.string().exactOptional(),
    metaData: jsonMap.nullable().exactOptional(),
    agentInvocationBehavior: agentInvocationBehavior.nullable().exactOptional(),
    runConcurrency: runConcurrency.nullable().exactOptional(),
  }),
  'ParticipantAdded.v1': z.object({ participant }),
  'ParticipantRemoved.v1': z.object({ participantId: z.string() }),
  /** A media item that names the channel was deleted; the actor deleted it. */
  'FileDeleted.v1': z.object({
    mediaId: z.string(),
    name: z.string(),
    /** SHA-256 of the content in hex; null for an item without a file. */
    hash: z.string().nullable(),
    bytes: z.int(),
    /** The interaction that shows the file; null if it was never posted. */
    interactionId: z.string().nullable(),
  }),
  'ChannelArchived.v1': z.object({}),
  /** `sequence`: of the interaction. */
  'InteractionPinned.v1': z.object({ sequence: z.int().positive() }),
  'InteractionUnpinned.v1': z.object({ sequence: z.int().positive() }),
});

export type ChannelEvent = EventOf<typeof channelCodec>;
export type FileDeleted = Extract<ChannelEvent, { type: 'FileDeleted.v1' }>['data'];
export type ChannelCreated = Extract<ChannelEvent, { type: 'ChannelCreated.v1' }>['data'];

/** A channel to create: with its setting, which is an event of its own. */
export type NewChannel = ChannelCreated & { readonly runConcurrency?: RunConcurrency | null };

/** A channel is folded, stored and sent as a whole, so its size affects every command. */
export const MAX_PARTICIPANTS = 1_000;
export const MAX_PARTICIPANTS_BYTES = 512 * 1024;
export const MAX_PINNED = 50;

/** An interaction that a participant pinned to its channel. */
export interface Pin {
  readonly sequence: number;
  readonly at: Timestamp;
  readonly by: Pick<Actor, 'type' | 'id'>;
}

/** A channel folded from its stream. Bounded. */
export interface Channel extends ChannelCreated, EntityState {
  readonly id: EntityId;
  readonly runConcurrency: RunConcurrency | null;
  readonly archivedAt: Timestamp | null;
  readonly ownerId: EntityId | null;
  /** In the order in which they were pinned. Absent if nothing ever was. */
  readonly pinned?: readonly Pin[];
}

/** `null` until the channel is created. */
export type ChannelState = Channel | null;

export type ChannelRejection =
  | { readonly reason: 'archived' }
  /** Only its owner and callers that see the organization administer a channel. */
  | { readonly reason: 'not_owner' }
  | { readonly reason: 'parent_not_found' }
  | { readonly reason: 'parent_archived' }
  /** The parent channel does not have the interaction that starts the thread. */
  | { readonly reason: 'origin_not_found' }
  | { readonly reason: 'too_many_participants' }
  | { readonly reason: 'participant_not_found' }
  | { readonly reason: 'interaction_not_found' }
  | { readonly reason: 'too_many_pinned' };

export type ChannelDecision = Decision<ChannelEvent, ChannelRejection>;

export const channelFold: Fold<ChannelState, ChannelEvent> = {
  initialState: null,
  evolve(state, event) {
    if (event.type === 'ChannelCreated.v1') {
      const { actor } = event.metadata;
      const { ownerId = actor.type === 'user' ? actor.id : null } = event.data;
      return { ...event.data, ...createdBy(event), runConcurrency: null, archivedAt: null, ownerId };
    }
    if (state === null) return state;
    const changed = { ...state, ...changedBy(event) };
    switch (event.type) {
      case 'ChannelRenamed.v1':
      case 'ChannelMetaDataChanged.v1':
      case 'AgentInvocationBehaviorChanged.v1':
      case 'RunConcurrencyChanged.v1':
      case 'ChannelChanged.v1':
        return { ...changed, ...event.data };
      case 'ParticipantAdded.v1':
        return { ...changed, participants: [...state.participants, event.data.participant] };
      case 'ParticipantRemoved.v1': {
        const { participantId } = event.data;
        return { ...changed, participants: state.participants.filter((one) => one.participantId !== participantId) };
      }
      case 'ChannelArchived.v1':
        return { ...changed, archivedAt: event.metadata.at };
      case 'InteractionPinned.v1': {
        const { at, actor } = event.metadata;
        const pin = { sequence: event.data.sequence, at, by: { type: actor.type, id: actor.id } };
        return { ...changed, pinned: [...(state.pinned ?? []), pin] };
      }
      case 'InteractionUnpinned.v1': {
        const { sequence } = event.data;
        return { ...changed, pinned: (state.pinned ?? []).filter((one) => one.sequence !== sequence) };
      }
      default:
        return state;
    }
  },
};

/** Creates the channel. Its id is new, so an existing channel was created by an earlier run of the same command. */
export function decideCreate(state: ChannelState, { runConcurrency = null, ...channel }: NewChannel): ChannelDecision {
  if (state !== null) return accept();
  const participants = channel.participants.filter(
    (one, index, all) => all.findIndex((other) => isSameParticipant(one, other)) === index,
  );
  // Users are referenced by id and stored with their details, so a small request can create a large channel.
  if (isTooLarge(participants)) return refuse({ reason: 'too_many_participants' });
  const created: ChannelEvent = { type: 'ChannelCreated.v1', data: { ...channel, participants } };
  return runConcurrency === null ? accept(created) : accept(created, concurrencyChanged(runConcurrency));
}

/** Creates the channel; one that exists gets those of the participants that it lacks. */
export function decideOpen(state: ChannelState, channel: NewChannel): ChannelDecision {
  if (state === null) return decideCreate(state, channel);
  if (state.archivedAt !== null) return refuse({ reason: 'archived' });
  const missing = channel.participants.filter((one) => !state.participants.some((own) => isSameParticipant(own, one)));
  return accept(...missing.map((participant) => ({ type: 'ParticipantAdded.v1' as const, data: { participant } })));
}

/** Fields to change; absent ones do not change, `null` clears. */
export interface ChannelChanges {
  readonly name?: string | undefined;
  readonly metaData?: ChannelCreated['metaData'] | undefined;
  readonly agentInvocationBehavior?: ChannelCreated['agentInvocationBehavior'] | undefined;
  readonly runConcurrency?: RunConcurrency | null | undefined;
}

export function decideUpdate(channel: Channel, changes: ChannelChanges): ChannelDecision {
  if (channel.archivedAt !== null) return refuse({ reason: 'archived' });
  const { name, metaData, agentInvocationBehavior, runConcurrency } = changes;
  const events: ChannelEvent[] = [];
  if (name !== undefined && name !== channel.name) events.push({ type: 'ChannelRenamed.v1', data: { name } });
  if (metaData !== undefined && !isDeepStrictEqual(metaData, channel.metaData)) {
    events.push({ type: 'ChannelMetaDataChanged.v1', data: { metaData } });
  }
  if (agentInvocationBehavior !== undefined && agentInvocationBehavior !== channel.agentInvocationBehavior) {
    events.push({ type: 'AgentInvocationBehaviorChanged.v1', data: { agentInvocationBehavior } });
  }
  if (runConcurrency !== undefined && runConcurrency !== channel.runConcurrency) {
    events.push(concurrencyChanged(runConcurrency));
  }
  if (events.length < 2) return accept(...events);
  const data: object = Object.assign({}, ...events.map((event) => event.data));
  return accept({ type: 'ChannelChanged.v1', data });
}

/** The organization's channel hears once of a deleted file; an archived one has had its last event. */
export function decideNoteDeletion(channel: Channel, file: FileDeleted): ChannelDecision {
  return channel.archivedAt === null ? accept({ type: 'FileDeleted.v1', data: file }) : refuse({ reason: 'archived' });
}

function concurrencyChanged(runConcurrency: RunConcurrency | null): ChannelEvent {
  return { type: 'RunConcurrencyChanged.v1', data: { runConcurrency } };
}

export function decideAddParticipant({ participants, archivedAt }: Channel, participant: Participant): ChannelDecision {
  if (archivedAt !== null) return refuse({ reason: 'archived' });
  if (participants.some((one) => isSameParticipant(one, participant))) return accept();
  if (participants.length >= MAX_PARTICIPANTS || isTooLarge([...participants, participant])) {
    return refuse({ reason: 'too_many_participants' });
  }
  return accept({ type: 'ParticipantAdded.v1', data: { participant } });
}

export function decideRemoveParticipant(
  { participants, archivedAt }: Channel,
  participantId: EntityId,
): ChannelDecision {
  if (archivedAt !== null) return refuse({ reason: 'archived' });
  if (!participants.some((one) => one.participantId === participantId)) {
    return refuse({ reason: 'participant_not_found' });
  }
  return accept({ type: 'ParticipantRemoved.v1', data: { participantId } });
}

/** Whether a channel may get a thread; `null` if the organization has no such channel. */
export function decideThread(parent: ChannelState): ChannelDecision {
  if (parent === null) return refuse({ reason: 'parent_not_found' });
  return parent.archivedAt === null ? accept() : refuse({ reason: 'parent_archived' });
}

/** Null if the actor of a command may administer the channel, or may at least remove itself from it. */
export function refusalOf(
  { participants, ownerId }: Channel,
  { isMember = false, actor }: { readonly isMember?: boolean | undefined; readonly actor: Actor },
  removedId?: EntityId,
): { readonly reason: 'not_owner' | 'not_found' } | null {
  if (!isMember) return null;
  const own = participants.find((one) => one.type === 'authenticated_user' && one.userId === actor.id);
  if (own === undefined) return { reason: 'not_found' };
  return ownerId === actor.id || own.participantId === removedId ? null : { reason: 'not_owner' };
}

/** A user or agent joins a channel once; participants without an identity may join repeatedly. */
function isSameParticipant(one: Participant, other: Participant): boolean {
  if (one.participantId === other.participantId) return true;
  if (one.type === 'authenticated_user') return other.type === one.type && other.userId === one.userId;
  if (one.type === 'agent') return other.type === one.type && other.agentId === one.agentId;
  return false;
}

function isTooLarge(participants: readonly Participant[]): boolean {
  return Buffer.byteLength(JSON.stringify(participants)) > MAX_PARTICIPANTS_BYTES;
}
