import { isDeepStrictEqual } from 'node:util';

import type { Timestamp } from '#libs/kernel/clock.ts';
import type { Decision, Fold } from '#libs/kernel/decider.ts';
import { accept, refuse } from '#libs/kernel/decider.ts';
import type { StreamEvent, StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

import type { ChannelCreated, ChannelEvent, Participant } from './channel.events.ts';

/** A channel is folded, stored and sent as a whole: more than this would make every command of it slow. */
export const MAX_PARTICIPANTS = 1_000;
export const MAX_PARTICIPANTS_BYTES = 512 * 1024;

/** A channel folded from its stream: bounded, whatever happens in the channel. */
export interface Channel extends Omit<ChannelCreated, 'participants'> {
  readonly organizationId: EntityId;
  readonly participants: readonly Participant[];
  readonly createdAt: Timestamp;
  readonly modified: Timestamp;
  readonly archivedAt: Timestamp | null;
  /** Revision of the last event that changed what the API shows of the channel. */
  readonly changedRevision: StreamRevision;
}

/** `null` until the channel is created. */
export type ChannelState = Channel | null;

export type ChannelRejection =
  | { readonly reason: 'not_found' }
  | { readonly reason: 'archived' }
  | { readonly reason: 'parent_not_found' }
  | { readonly reason: 'parent_archived' }
  /** The message that started a thread is not an interaction of the parent channel. */
  | { readonly reason: 'origin_not_found' }
  | { readonly reason: 'too_many_participants' }
  | { readonly reason: 'participant_not_found' };

type ChannelDecision = Decision<ChannelEvent, ChannelRejection>;

/** Whose channel a command expects to find. */
export interface ChannelTarget {
  readonly organizationId: EntityId;
}

export const channelFold: Fold<ChannelState, ChannelEvent> = {
  initialState: null,
  evolve(state, event) {
    if (event.type === 'ChannelCreated.v1') return created(event);
    if (state === null) return state;
    const changed = { ...state, modified: event.metadata.at, changedRevision: event.revision };
    switch (event.type) {
      case 'ChannelRenamed.v1':
      case 'ChannelMetaDataChanged.v1':
      case 'AgentInvocationBehaviorChanged.v1':
        return { ...changed, ...event.data };
      case 'ParticipantAdded.v1':
        return { ...changed, participants: [...state.participants, event.data.participant] };
      case 'ParticipantRemoved.v1': {
        const { participantId } = event.data;
        return { ...changed, participants: state.participants.filter((one) => one.participantId !== participantId) };
      }
      case 'ChannelArchived.v1':
        return { ...changed, archivedAt: event.metadata.at };
      default:
        return state;
    }
  },
};

function created(event: StreamEvent<Extract<ChannelEvent, { type: 'ChannelCreated.v1' }>>): Channel {
  const { at, organizationId } = event.metadata;
  return {
    ...event.data,
    organizationId,
    createdAt: at,
    modified: at,
    archivedAt: null,
    changedRevision: event.revision,
  };
}

/** Creates the channel. Its id is new, so one that exists was made by this very command before. */
export function decideCreate(state: ChannelState, channel: ChannelCreated): ChannelDecision {
  if (state !== null) return accept();
  const participants = channel.participants.filter(
    (one, index, all) => all.findIndex((other) => isSameParticipant(one, other)) === index,
  );
  // Users are named by their id and stored with their details: a small request can make a large channel.
  if (isTooLarge(participants)) return refuse({ reason: 'too_many_participants' });
  return accept({ type: 'ChannelCreated.v1', data: { ...channel, participants } });
}

/** Fields to change; absent ones stay as they are, `null` clears. */
export interface ChannelChanges {
  readonly name?: string | undefined;
  readonly metaData?: ChannelCreated['metaData'] | undefined;
  readonly agentInvocationBehavior?: ChannelCreated['agentInvocationBehavior'] | undefined;
}

export function decideUpdate(state: ChannelState, target: ChannelTarget, changes: ChannelChanges): ChannelDecision {
  const found = findOpen(state, target);
  if (!found.ok) return found;
  const { channel } = found;
  const { name, metaData, agentInvocationBehavior } = changes;
  const events: ChannelEvent[] = [];
  if (name !== undefined && name !== channel.name) events.push({ type: 'ChannelRenamed.v1', data: { name } });
  if (metaData !== undefined && !isDeepStrictEqual(metaData, channel.metaData)) {
    events.push({ type: 'ChannelMetaDataChanged.v1', data: { metaData } });
  }
  if (agentInvocationBehavior !== undefined && agentInvocationBehavior !== channel.agentInvocationBehavior) {
    events.push({ type: 'AgentInvocationBehaviorChanged.v1', data: { agentInvocationBehavior } });
  }
  return accept(...events);
}

export function decideAddParticipant(
  state: ChannelState,
  target: ChannelTarget,
  participant: Participant,
): ChannelDecision {
  const found = findOpen(state, target);
  if (!found.ok) return found;
  const { participants } = found.channel;
  if (participants.some((one) => isSameParticipant(one, participant))) return accept();
  if (participants.length >= MAX_PARTICIPANTS || isTooLarge([...participants, participant])) {
    return refuse({ reason: 'too_many_participants' });
  }
  return accept({ type: 'ParticipantAdded.v1', data: { participant } });
}

export function decideRemoveParticipant(
  state: ChannelState,
  target: ChannelTarget,
  participantId: EntityId,
): ChannelDecision {
  const found = findOpen(state, target);
  if (!found.ok) return found;
  if (!found.channel.participants.some((one) => one.participantId === participantId)) {
    return refuse({ reason: 'participant_not_found' });
  }
  return accept({ type: 'ParticipantRemoved.v1', data: { participantId } });
}

/**
 * Archives the channel. `ChannelArchived.v1` is the last event of a stream: a channel that was archived while
 * interactions were open, as earlier versions did, is archived again after they have been ended.
 */
export function decideArchive(
  state: ChannelState,
  target: ChannelTarget,
  hasOpenInteractions: boolean,
): ChannelDecision {
  const found = find(state, target);
  if (!found.ok) return found;
  if (found.channel.archivedAt !== null && !hasOpenInteractions) return accept();
  return accept({ type: 'ChannelArchived.v1', data: {} });
}

/** Whether a thread may be created below a channel. */
export function decideThread(parent: ChannelState, target: ChannelTarget): ChannelDecision {
  if (parent === null || parent.organizationId !== target.organizationId) return refuse({ reason: 'parent_not_found' });
  return parent.archivedAt === null ? accept() : refuse({ reason: 'parent_archived' });
}

/** The same user or agent joins a channel once; callers without an identity may join any number of times. */
function isSameParticipant(one: Participant, other: Participant): boolean {
  if (one.participantId === other.participantId) return true;
  if (one.type === 'authenticated_user') return other.type === one.type && other.userId === one.userId;
  if (one.type === 'agent') return other.type === one.type && other.agentId === one.agentId;
  return false;
}

function isTooLarge(participants: readonly Participant[]): boolean {
  return Buffer.byteLength(JSON.stringify(participants)) > MAX_PARTICIPANTS_BYTES;
}

type Found = { readonly ok: true; readonly channel: Channel } | Extract<ChannelDecision, { ok: false }>;

/** Another organization's channel is refused just as one that does not exist. */
function find(state: ChannelState, target: ChannelTarget): Found {
  if (state === null || state.organizationId !== target.organizationId) return refuse({ reason: 'not_found' });
  return { ok: true, channel: state };
}

function findOpen(state: ChannelState, target: ChannelTarget): Found {
  const found = find(state, target);
  return found.ok && found.channel.archivedAt !== null ? refuse({ reason: 'archived' }) : found;
}
