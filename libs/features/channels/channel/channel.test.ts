import { describe, expect, it } from 'vitest';

import { foldEvents } from '#libs/kernel/decider.ts';
import { type StreamEvent, streamRevision } from '#libs/kernel/event.ts';
import { describeStoredEvents } from '#test/support/event-samples.ts';

import {
  type Channel,
  channelCodec,
  type ChannelCreated,
  type ChannelEvent,
  channelFold,
  decideAddParticipant,
  decideCreate,
  decideRemoveParticipant,
  decideThread,
  decideUpdate,
  MAX_PARTICIPANTS,
} from './channel.ts';
import samples from './channel.events.samples.json' with { type: 'json' };
import type { Participant } from './participant.ts';

describeStoredEvents('channels', channelCodec, samples);

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
function given(...events: ChannelEvent[]): Channel {
  const state = foldEvents(
    channelFold,
    channelFold.initialState,
    events.map((event, index) => ({
      ...event,
      id: `event-${index}`,
      revision: streamRevision(index),
      metadata: {
        at: `2026-01-31T12:0${index % 10}:00.000Z`,
        organizationId: 'org-1',
        actor: { type: 'service', id: 'test' },
        commandId: `command-${index}`,
        $correlationId: `command-${index}`,
        $causationId: `command-${index}`,
      },
    })) as StreamEvent<ChannelEvent>[],
  );
  if (state === null) throw new Error('these events create no channel');
  return state;
}

describe('creating a channel', () => {
  it('records the request', () => {
    expect(decideCreate(null, blank)).toEqual({ ok: true, events: [created] });
  });

  it('yields no events when the same command is repeated', () => {
    expect(decideCreate(given(created), blank)).toEqual({ ok: true, events: [] });
  });

  it('adds a user once that is listed twice', () => {
    const decision = decideCreate(null, {
      ...blank,
      participants: [user('a', 'u-1'), user('b', 'u-1'), guest('c')],
    });
    expect(decision.ok && decision.events[0]?.data).toMatchObject({ participants: [user('a', 'u-1'), guest('c')] });
  });
});

describe('updating a channel', () => {
  it('ignores absent fields', () => {
    expect(decideUpdate(given(created), {})).toEqual({ ok: true, events: [] });
  });

  it('records only what differs', () => {
    const changes = { name: 'Support', metaData: null, agentInvocationBehavior: 'intelligent' } as const;
    expect(decideUpdate(given(created), changes)).toEqual({
      ok: true,
      events: [{ type: 'ChannelChanged.v1', data: { metaData: null, agentInvocationBehavior: 'intelligent' } }],
    });
    expect(decideUpdate(given(created), { metaData: null })).toEqual({
      ok: true,
      events: [{ type: 'ChannelMetaDataChanged.v1', data: { metaData: null } }],
    });
  });

  it('states what messages do to runs, also from the beginning', () => {
    const changed: ChannelEvent = { type: 'RunConcurrencyChanged.v1', data: { runConcurrency: 'restart' } };
    expect(decideCreate(null, { ...blank, runConcurrency: 'restart' })).toEqual({
      ok: true,
      events: [created, changed],
    });
    expect(given(created).runConcurrency).toBeNull();
    expect(decideUpdate(given(created), { runConcurrency: 'restart' })).toEqual({ ok: true, events: [changed] });
    expect(decideUpdate(given(created, changed), { runConcurrency: 'restart' })).toEqual({ ok: true, events: [] });
    expect(decideUpdate(given(created, changed), { name: 'Support' })).toEqual({ ok: true, events: [] });
    const cleared = decideUpdate(given(created, changed), { runConcurrency: null });
    expect(cleared).toMatchObject({ ok: true, events: [{ data: { runConcurrency: null } }] });
  });

  it('accepts an empty name', () => {
    expect(decideUpdate(given(created), { name: '' })).toMatchObject({
      ok: true,
      events: [{ data: { name: '' } }],
    });
  });

  it('replaces the whole map of meta data', () => {
    const state = given(created, { type: 'ChannelMetaDataChanged.v1', data: { metaData: { b: 1 } } });
    expect(state.metaData).toEqual({ b: 1 });
  });

  it('is rejected for an archived channel', () => {
    expect(decideUpdate(given(created, archived), { name: 'x' })).toEqual({
      ok: false,
      rejection: { reason: 'archived' },
    });
  });

  it('changes the time of modification, not of creation', () => {
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
    expect(decideAddParticipant(given(created), guest('p-1'))).toEqual({ ok: true, events: [joined] });
    const left: ChannelEvent = { type: 'ParticipantRemoved.v1', data: { participantId: 'p-1' } };
    expect(decideRemoveParticipant(given(created, joined), 'p-1')).toEqual({ ok: true, events: [left] });
    expect(given(created, joined, left).participants).toEqual([]);
  });

  it('join once if they have an identity', () => {
    const state = given(created, { type: 'ParticipantAdded.v1', data: { participant: user('p-1', 'u-1') } });
    expect(decideAddParticipant(state, user('p-2', 'u-1'))).toEqual({ ok: true, events: [] });
    expect(decideAddParticipant(state, user('p-2', 'u-2'))).toMatchObject({ ok: true, events: [{}] });
    expect(decideAddParticipant(state, guest('p-2'))).toMatchObject({ ok: true, events: [{}] });
  });

  it('are limited in number', () => {
    const participants = Array.from({ length: MAX_PARTICIPANTS }, (_, index) => guest(`p-${index}`));
    const full = given({ type: 'ChannelCreated.v1', data: { ...blank, participants } });
    expect(decideAddParticipant(full, guest('one more'))).toEqual({
      ok: false,
      rejection: { reason: 'too_many_participants' },
    });
  });

  it('are limited in bytes', () => {
    const large = (participantId: string): Participant => ({
      type: 'external_agent',
      participantId,
      agentMetadata: { notes: 'x'.repeat(300_000) },
    });
    const state = given({ type: 'ChannelCreated.v1', data: { ...blank, participants: [large('p-1')] } });
    expect(decideAddParticipant(state, large('p-2'))).toMatchObject({ ok: false });
    expect(decideAddParticipant(state, guest('p-2'))).toMatchObject({ ok: true });
  });

  it('cannot be removed if they are missing', () => {
    expect(decideRemoveParticipant(given(created), 'p-1')).toEqual({
      ok: false,
      rejection: { reason: 'participant_not_found' },
    });
  });
});

describe('creating a thread', () => {
  it('requires a channel of the organization that is not archived', () => {
    expect(decideThread(null)).toEqual({ ok: false, rejection: { reason: 'parent_not_found' } });
    expect(decideThread(given(created, archived))).toEqual({ ok: false, rejection: { reason: 'parent_archived' } });
    expect(decideThread(given(created))).toEqual({ ok: true, events: [] });
  });
});
