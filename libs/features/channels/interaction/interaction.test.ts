import { describe, expect, it } from 'vitest';

import type { ChannelState } from '../channel/channel.ts';
import { foldEvents } from '#libs/kernel/decider.ts';
import { type ChannelSequence, sequenceOf, type StreamEvent, streamRevision } from '#libs/kernel/event.ts';
import { describeStoredEvents } from '#test/support/event-samples.ts';

import { interactionCodec, type InteractionEvent, type InteractionPosted } from './interaction.events.ts';
import {
  decideAppend,
  decideArchive,
  decideComplete,
  decideFail,
  decidePost,
  type ChannelStream,
  interactionFold,
  MAX_DEPTH,
  MAX_OPEN,
  MAX_OPEN_BYTES,
  type Post,
} from './interaction.ts';
import { InteractionCommands } from './interaction.commands.ts';
import samples from './interaction.events.samples.json' with { type: 'json' };

describeStoredEvents('interactions', interactionCodec, samples, {
  'InteractionCompleted.v1': {
    type: 'InteractionCompleted.v2',
    data: { ...samples['InteractionCompleted.v1'], metadata: null, invocationConfig: null },
  },
});

const kept = { metadata: null, invocationConfig: null };

const organizationId = 'org-1';
const channel: NonNullable<ChannelState> = {
  id: '0198c0de-0000-7000-8000-000000000000',
  organizationId,
  type: 'websocket',
  channelType: 'chat',
  name: 'Support',
  participants: [],
  metaData: null,
  source: null,
  agentInvocationBehavior: null,
  runConcurrency: null,
  ownerId: null,
  parentChannelId: null,
  originMessageId: null,
  createdAt: '2026-01-31T12:00:00.000Z',
  modified: '2026-01-31T12:00:00.000Z',
  changedRevision: streamRevision(0),
  archivedAt: null,
};
const text = (value: string): { type: string; text: string } => ({ type: 'text', text: value });
const message: InteractionPosted = {
  participant: { type: 'system' },
  content: [text('hello')],
  contentRole: 'channel_notification',
  complete: true,
  metadata: null,
  invocationConfig: null,
  turnId: 'turn',
  spanId: 'span',
  parentSpanId: null,
  depth: 1,
  organizationApplication: null,
};
const begun: InteractionEvent = { type: 'InteractionPosted.v1', data: { ...message, complete: false } };
const { depth: _depth, ...rest } = message;
const post: Post = { ...rest, organizationId, parent: null, spanTaken: false };
const at = (revision: number): ChannelSequence => sequenceOf(streamRevision(revision));
const target = { organizationId, sequence: at(0), exists: true, isSender: () => true };

/** The state after events, the first of which has the sequence 1. */
function given(...events: InteractionEvent[]): ChannelStream {
  const stored = events.map((event, index) => ({
    ...event,
    id: `event-${index}`,
    revision: streamRevision(index),
    metadata: {
      at: '2026-01-31T12:00:00.000Z',
      organizationId,
      actor: { type: 'service', id: 'test' },
      commandId: `command-${index}`,
      $correlationId: `command-${index}`,
      $causationId: `command-${index}`,
    },
  })) as StreamEvent<InteractionEvent>[];
  return { channel, interactions: foldEvents(interactionFold, interactionFold.initialState, stored) };
}
const archived = (state: ChannelStream): ChannelStream => ({
  ...state,
  channel: { ...channel, archivedAt: '2026-02-01T00:00:00.000Z' },
});
const refusal = (reason: string): object => ({ ok: false, rejection: { reason } });
const full = (oldest: number | null): object => ({ ok: false, rejection: { reason: 'too_many_open', oldest } });

describe('archiving a channel', () => {
  const context = { organizationId, actor: { type: 'user', id: 'user-1' } as const };
  const last = { type: 'ChannelArchived.v1', data: {} };
  const failure = { type: 'InteractionFailed.v1', data: { sequence: 1, reason: 'The channel was archived' } };

  it('fails its incomplete interactions, and is the last event', () => {
    expect(decideArchive(given(), context)).toEqual({ ok: true, events: [last] });
    expect(decideArchive(given(begun), context)).toEqual({ ok: true, events: [failure, last] });
  });

  it('is repeated only while interactions are incomplete', () => {
    expect(decideArchive(archived(given()), context)).toEqual({ ok: true, events: [] });
    expect(decideArchive(archived(given(begun)), context)).toEqual({ ok: true, events: [failure, last] });
  });

  it('is refused to another organization, and without a channel', () => {
    expect(decideArchive(given(), { ...context, organizationId: 'org-2' })).toEqual(refusal('not_found'));
    expect(decideArchive({ ...given(), channel: null }, context)).toEqual(refusal('not_found'));
  });

  it('is refused to members that do not own it', () => {
    const member = { ...context, isMember: true };
    expect(decideArchive(given(), member)).toEqual(refusal('not_found'));
  });
});

describe('posting', () => {
  it('records the request, at the root of its tree', () => {
    expect(decidePost(given(), post)).toEqual({
      ok: true,
      events: [{ type: 'InteractionPosted.v1', data: message }],
    });
  });

  it.each([
    ['own', { turnId: 'own', parent: { depth: 1, turnId: 'theirs' }, parentSpanId: 'parent' }, 'own'],
    ["parent's", { turnId: null, parent: { depth: 1, turnId: 'theirs' }, parentSpanId: 'parent' }, 'theirs'],
    ['new', { turnId: null, parent: { depth: 1, turnId: null }, parentSpanId: 'parent' }, 'span'],
    ['new', { turnId: null }, 'span'],
  ])('gets the %s turn', (_which, change, turnId) => {
    expect(decidePost(given(), { ...post, ...change })).toMatchObject({ events: [{ data: { turnId } }] });
  });

  it(`is one level below its parent, at most ${MAX_DEPTH} levels deep`, () => {
    const below = (depth: number): ReturnType<typeof decidePost> =>
      decidePost(given(), { ...post, parentSpanId: 'parent', parent: { depth, turnId: null } });
    expect(below(MAX_DEPTH - 1)).toMatchObject({ events: [{ data: { depth: MAX_DEPTH } }] });
    expect(below(MAX_DEPTH)).toEqual(refusal('too_deep'));
  });

  it('is rejected in a channel that is missing, foreign or archived', () => {
    expect(decidePost({ ...given(), channel: null }, post)).toEqual(refusal('not_found'));
    expect(decidePost(archived(given()), { ...post, organizationId: 'org-2' })).toEqual(refusal('not_found'));
    expect(decidePost(archived(given()), post)).toEqual(refusal('archived'));
  });

  it('is rejected for a missing parent and a span that is taken', () => {
    expect(decidePost(given(), { ...post, parentSpanId: 'unknown' })).toEqual(refusal('parent_not_found'));
    const own = { ...post, parentSpanId: 'span', parent: { depth: 1, turnId: null } };
    expect(decidePost(given(), own)).toEqual(refusal('parent_not_found'));
    expect(decidePost(given(), { ...post, spanTaken: true })).toEqual(refusal('span_taken'));
  });

  it('is rejected if too many interactions or bytes are incomplete; complete ones do not count', () => {
    const most = given(...Array.from({ length: MAX_OPEN }, () => begun));
    expect(decidePost(most, { ...post, complete: false })).toEqual(full(1));
    expect(decidePost(most, post)).toMatchObject({ ok: true });
    const large = { ...post, complete: false, content: [text('x'.repeat(MAX_OPEN_BYTES))] };
    expect(decidePost(given(), large)).toEqual(full(null));
    for (const part of ['metadata', 'invocationConfig', 'participant'] as const) {
      const about = { type: 'external_agent', text: 'ü'.repeat(MAX_OPEN_BYTES / 4) };
      const half = { ...post, complete: false, [part]: about };
      const begunLarge: InteractionEvent = { ...begun, data: { ...begun.data, [part]: about } };
      expect(decidePost(given(), half)).toMatchObject({ ok: true });
      expect(decidePost(given(begunLarge), half)).toEqual(full(1));
      expect(decidePost(given(begunLarge), { ...half, complete: true })).toMatchObject({ ok: true });
    }
    const firstEnded: InteractionEvent = {
      type: 'InteractionCompleted.v2',
      data: { sequence: at(0), content: null, ...kept },
    };
    const oneLess = [...Array.from({ length: MAX_OPEN }, () => begun), firstEnded];
    expect(decidePost(given(...oneLess), { ...post, complete: false })).toMatchObject({ ok: true });
    expect(decidePost(given(...oneLess, begun), { ...post, complete: false })).toEqual(full(2));
  });
});

describe('an incomplete interaction', () => {
  const more = [text('more')];

  it('accepts content, is completed with or without new content, or fails', () => {
    const data = { sequence: 1 };
    expect(decideAppend(given(begun), target, more)).toEqual({
      ok: true,
      events: [{ type: 'InteractionContentAppended.v1', data: { ...data, content: more } }],
    });
    for (const content of [null, more]) {
      expect(decideComplete(given(begun), target, content)).toEqual({
        ok: true,
        events: [{ type: 'InteractionCompleted.v2', data: { ...data, content, ...kept } }],
      });
    }
    expect(decideFail(given(begun), target, 'why')).toEqual({
      ok: true,
      events: [{ type: 'InteractionFailed.v1', data: { ...data, reason: 'why' } }],
    });
  });

  it('ignores empty content, and limits the bytes', () => {
    expect(decideAppend(given(begun), target, [])).toEqual({ ok: true, events: [] });
    const much = [text('x'.repeat(MAX_OPEN_BYTES))];
    expect(decideAppend(given(begun), target, much)).toEqual(full(1));
    const most = given(...Array.from({ length: MAX_OPEN }, () => begun));
    expect(decideAppend(most, target, more)).toMatchObject({ ok: true });
  });

  it('counts the bytes of all incomplete interactions, not of those that have ended', () => {
    const half: InteractionEvent = {
      type: 'InteractionContentAppended.v1',
      data: { sequence: 1, content: [text('ü'.repeat(MAX_OPEN_BYTES / 4))] },
    };
    const other: InteractionEvent = { ...half, data: { ...half.data, sequence: 2 } };
    expect(decideAppend(given(begun, begun, half), target, more)).toMatchObject({ ok: true });
    expect(decideAppend(given(begun, begun, half, other), target, more)).toEqual(full(1));
    const ended: InteractionEvent = { type: 'InteractionFailed.v1', data: { sequence: 2, reason: '' } };
    expect(decideAppend(given(begun, begun, half, other, ended), target, more)).toMatchObject({ ok: true });
  });

  it('is in the state until it is complete', () => {
    const appended: InteractionEvent = {
      type: 'InteractionContentAppended.v1',
      data: { sequence: 1, content: more },
    };
    expect(given(begun, appended).interactions.open).toMatchObject({
      1: { items: JSON.stringify([text('hello'), ...more]).slice(1, -1), complete: false },
    });
    const ends: InteractionEvent[] = [
      { type: 'InteractionCompleted.v2', data: { sequence: 1, content: null, ...kept } },
      { type: 'InteractionFailed.v1', data: { sequence: 1, reason: '' } },
    ];
    for (const end of ends) expect(given(begun, appended, end, appended).interactions.open).toEqual({});
  });

  it('accepts content from permitted writers only, who alone can fail it', () => {
    const stranger = { ...target, isSender: () => false };
    expect(decideAppend(given(begun), stranger, more)).toEqual(refusal('not_the_sender'));
    expect(decideComplete(given(begun), stranger, null)).toEqual(refusal('not_the_sender'));
    expect(decideFail(given(begun), stranger, '')).toEqual(refusal('not_the_sender'));
  });

  const changes = [
    ['append', (state: ChannelStream, to: typeof target) => decideAppend(state, to, more)],
    ['complete', (state: ChannelStream, to: typeof target) => decideComplete(state, to, null)],
    ['fail', (state: ChannelStream, to: typeof target) => decideFail(state, to, '')],
  ] as const;

  it.each(changes)('rejects to %s one that is missing, foreign, archived or complete', (_what, decide) => {
    expect(decide({ ...given(begun), channel: null }, target)).toEqual(refusal('not_found'));
    expect(decide(archived(given(begun)), { ...target, organizationId: 'org-2' })).toEqual(refusal('not_found'));
    expect(decide(archived(given(begun)), { ...target, exists: false })).toEqual(refusal('not_found'));
    expect(decide(archived(given(begun)), target)).toEqual(refusal('archived'));
    expect(decide(given(), target)).toEqual(refusal('complete_already'));
  });
});

it.each(['append', 'complete'] as const)('%s has no default for the writer', (command) => {
  // The length of a function counts its parameters up to the first one that has a default.
  expect(InteractionCommands.prototype[command]).toHaveLength(4);
});
