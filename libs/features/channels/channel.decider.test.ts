import { describe, expect, it } from 'vitest';

import { foldEvents } from '#libs/kernel/decider.ts';
import { streamRevision } from '#libs/kernel/event.ts';
import type { StreamEvent } from '#libs/kernel/event.ts';

import {
  MAX_PARTICIPANTS,
  channelFold,
  decideAddParticipant,
  decideArchive,
  decideCreate,
  decideRemoveParticipant,
  decideUpdate,
} from './channel.decider.ts';
import type { ChannelState } from './channel.decider.ts';
import type { ChannelCreated, ChannelEvent, Participant } from './channel.events.ts';

const ours = { organizationId: 'org-1' };
const theirs = { organizationId: 'org-2' };

const blank: ChannelCreated = {
  id: 'channel-1',
  type: 'websocket',
  channelType: 'chat',
  name: 'Support',
  participants: [],
  metaData: { topic: 'billing' },
  source: null,
  agentInvocationBehavior: null,
  parentChannelId: null,
  originMessageId: null,
};
const created: ChannelEvent = { type: 'ChannelCreated.v1', data: blank };
const archived: ChannelEvent = { type: 'ChannelArchived.v1', data: {} };
const guest = (participantId: string): Participant => ({ type: 'external_agent', participantId, agentMetadata: null });
const user = (participantId: string, userId: string): Participant => ({
  type: 'authenticated_user',
  participantId,
  userId,
  displayName: 'Ada',
  imageUrl: null,
  isOwner: true,
});

/** The state after events that happened a minute apart, from 12:00 on. */
function given(...events: ChannelEvent[]): ChannelState {
  return foldEvents(
    channelFold,
    channelFold.initialState,
    events.map((event, index) => ({
      ...event,
      id: `event-${index}`,
      revision: streamRevision(index),
      metadata: {
        at: `2026-01-31T12:0${index % 10}:00.000Z`,
        organizationId: ours.organizationId,
        actor: { type: 'service', id: 'test' },
        commandId: `command-${index}`,
        $correlationId: `command-${index}`,
        $causationId: `command-${index}`,
      },
    })) as StreamEvent<ChannelEvent>[],
  );
}

describe('creating a channel', () => {
  it('records what was asked for', () => {
    expect(decideCreate(given(), blank)).toEqual({ ok: true, events: [created] });
  });

  it('again, by the same command, changes nothing', () => {
    expect(decideCreate(given(created), blank)).toEqual({ ok: true, events: [] });
  });

  it('takes a user who is named twice once', () => {
    const decision = decideCreate(given(), {
      ...blank,
      participants: [user('a', 'u-1'), user('b', 'u-1'), guest('c')],
    });
    expect(decision.ok && decision.events[0]?.data).toMatchObject({ participants: [user('a', 'u-1'), guest('c')] });
  });
});

describe('updating a channel', () => {
  it('leaves alone what is absent', () => {
    expect(decideUpdate(given(created), ours, {})).toEqual({ ok: true, events: [] });
  });

  it('records only what differs', () => {
    const changes = { name: 'Support', metaData: null, agentInvocationBehavior: 'intelligent' } as const;
    expect(decideUpdate(given(created), ours, changes)).toEqual({
      ok: true,
      events: [
        { type: 'ChannelMetaDataChanged.v1', data: { metaData: null } },
        { type: 'AgentInvocationBehaviorChanged.v1', data: { agentInvocationBehavior: 'intelligent' } },
      ],
    });
  });

  it('takes an empty name for a name', () => {
    expect(decideUpdate(given(created), ours, { name: '' })).toMatchObject({
      ok: true,
      events: [{ data: { name: '' } }],
    });
  });

  it('replaces the whole map of meta data', () => {
    const state = given(created, { type: 'ChannelMetaDataChanged.v1', data: { metaData: { b: 1 } } });
    expect(state?.metaData).toEqual({ b: 1 });
  });

  it('is refused for a missing and for a foreign channel in the same way', () => {
    const missing = decideUpdate(given(), ours, { name: 'x' });
    expect(missing).toEqual({ ok: false, rejection: { reason: 'not_found' } });
    expect(decideUpdate(given(created), theirs, { name: 'x' })).toEqual(missing);
  });

  it('is refused once the channel is archived', () => {
    expect(decideUpdate(given(created, archived), ours, { name: 'x' })).toEqual({
      ok: false,
      rejection: { reason: 'archived' },
    });
  });

  it('moves the time of modification, and not that of creation', () => {
    const state = given(created, { type: 'ChannelRenamed.v1', data: { name: 'other' } });
    expect(state).toMatchObject({
      name: 'other',
      createdAt: '2026-01-31T12:00:00.000Z',
      modified: '2026-01-31T12:01:00.000Z',
      changedRevision: 1,
    });
  });
});

describe('participants', () => {
  it('join and leave', () => {
    const joined: ChannelEvent = { type: 'ParticipantAdded.v1', data: { participant: guest('p-1') } };
    expect(decideAddParticipant(given(created), ours, guest('p-1'))).toEqual({ ok: true, events: [joined] });
    const left: ChannelEvent = { type: 'ParticipantRemoved.v1', data: { participantId: 'p-1' } };
    expect(decideRemoveParticipant(given(created, joined), ours, 'p-1')).toEqual({ ok: true, events: [left] });
    expect(given(created, joined, left)?.participants).toEqual([]);
  });

  it('join once, if they can be told apart', () => {
    const state = given(created, { type: 'ParticipantAdded.v1', data: { participant: user('p-1', 'u-1') } });
    expect(decideAddParticipant(state, ours, user('p-2', 'u-1'))).toEqual({ ok: true, events: [] });
    expect(decideAddParticipant(state, ours, user('p-2', 'u-2'))).toMatchObject({ ok: true, events: [{}] });
    expect(decideAddParticipant(state, ours, guest('p-2'))).toMatchObject({ ok: true, events: [{}] });
  });

  it('are bounded in number', () => {
    const participants = Array.from({ length: MAX_PARTICIPANTS }, (_, index) => guest(`p-${index}`));
    const full = given({ type: 'ChannelCreated.v1', data: { ...blank, participants } });
    expect(decideAddParticipant(full, ours, guest('one more'))).toEqual({
      ok: false,
      rejection: { reason: 'too_many_participants' },
    });
  });

  it('are bounded in what they bring along', () => {
    const large = (participantId: string): Participant => ({
      type: 'external_agent',
      participantId,
      agentMetadata: { notes: 'x'.repeat(300_000) },
    });
    const state = given({ type: 'ChannelCreated.v1', data: { ...blank, participants: [large('p-1')] } });
    expect(decideAddParticipant(state, ours, large('p-2'))).toMatchObject({ ok: false });
    expect(decideAddParticipant(state, ours, guest('p-2'))).toMatchObject({ ok: true });
  });

  it('who are not there cannot be removed', () => {
    expect(decideRemoveParticipant(given(created), ours, 'p-1')).toEqual({
      ok: false,
      rejection: { reason: 'participant_not_found' },
    });
  });
});

describe('archiving a channel', () => {
  it('happens once', () => {
    expect(decideArchive(given(created), ours, false)).toEqual({ ok: true, events: [archived] });
    expect(decideArchive(given(created, archived), ours, false)).toEqual({ ok: true, events: [] });
  });

  it('happens again while interactions are open, so that it is the last event', () => {
    expect(decideArchive(given(created, archived), ours, true)).toEqual({ ok: true, events: [archived] });
  });

  it('is refused for another organization', () => {
    expect(decideArchive(given(created), theirs, false)).toEqual({ ok: false, rejection: { reason: 'not_found' } });
  });
});
