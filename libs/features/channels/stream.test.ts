import { describe, expect, it } from 'vitest';

import { foldEvents } from '#libs/kernel/decider.ts';
import { type StreamEvent, streamRevision } from '#libs/kernel/event.ts';
import { entityKeys } from '#libs/platform/readmodel/index.ts';
import { projectRun } from '#libs/platform/readmodel/projection.ts';

import { CHANNEL_READ_MODEL } from './channel.keys.ts';
import channelSamples from './channel/channel.events.samples.json' with { type: 'json' };
import interactionSamples from './interaction/interaction.events.samples.json' with { type: 'json' };
import reactionSamples from './reaction/reaction.events.samples.json' with { type: 'json' };
import { channelFrames, channelProjection, type ChannelStreamEvent } from './stream.ts';

const organizationId = 'organization-1';
const id = '019aa5b0-0000-7000-8000-000000000001';
const keys = entityKeys(CHANNEL_READ_MODEL, organizationId, id);
const post = interactionSamples['InteractionPosted.v1'];

const events = (
  [
    ['ChannelCreated.v1', { ...channelSamples['ChannelCreated.v1'], id }],
    ['InteractionPosted.v1', { ...post, complete: true }],
    ['InteractionPosted.v1', { ...post, complete: false, spanId: 'open' }],
    ['ReactionAdded.v1', { ...reactionSamples['ReactionAdded.v1'], sequence: 2 }],
    ['ChannelRenamed.v1', { name: 'Renamed' }],
    ['InteractionContentAppended.v1', { sequence: 3, content: [{ type: 'text', text: 'more' }] }],
    ['InteractionCompleted.v2', { sequence: 3, content: null, metadata: null, invocationConfig: null }],
  ] as const
).map(([type, data], at) => ({
  type,
  data,
  id: `event-${at}`,
  revision: streamRevision(at),
  metadata: {
    at: '2026-01-31T12:00:00.000Z',
    organizationId,
    actor: { type: 'service' as const, id: 'test' },
    commandId: `command-${at}`,
    $correlationId: `command-${at}`,
    $causationId: `command-${at}`,
  },
})) as unknown as readonly StreamEvent<ChannelStreamEvent>[];

/** The run of the events from one position to another. */
const runOf = (from: number, to = events.length) => {
  const { fold } = channelProjection;
  const before = foldEvents(fold, fold.initialState, events.slice(0, from));
  const own = events.slice(from, to);
  return { organizationId, id, before, after: foldEvents(fold, before, own), events: own };
};
/** The keys that a run writes, without the prefix of the channel. */
const written = (run: ReturnType<typeof runOf> & { readonly isRepair?: boolean }) => {
  const prefix = keys.revision.length - 'revision'.length;
  const { operations, lists } = projectRun(channelProjection, run, keys);
  return { keys: [...new Set(operations.map(({ key }) => key.slice(prefix)))], lists };
};

describe('the stream of a channel', () => {
  it('is folded into the channel and its incomplete interactions', () => {
    const { channel, interactions } = runOf(0, 6).after;
    expect(channel).toMatchObject({ id, name: 'Renamed', changedRevision: 4 });
    expect(Object.values(interactions.open)).toMatchObject([{ sequence: 3, spanId: 'open' }]);
    expect(runOf(0).after.interactions).toEqual({ open: {} });
  });

  it('has the same state after an event that changes nothing of it', () => {
    for (const at of [1, 3]) {
      const { before, after } = runOf(at, at + 1);
      expect(after).toBe(before);
    }
  });

  it('writes of a post neither the channel nor its entry in the list', () => {
    const posted = written(runOf(1, 2));
    expect(posted.keys).toContain('interactions');
    expect(posted.keys.filter((key) => key.startsWith('state') || key === 'document')).toEqual([]);
    expect(posted.lists).toEqual([]);
  });

  it('writes of a change of the channel only the channel, and dates its entry in the list by it', () => {
    const { keys: changed, lists } = written(runOf(3, 5));
    expect(changed).toEqual(['state:channel', 'document', 'marks', 'marks:known', 'interactions']);
    expect(lists).toMatchObject([{ revision: 4 }]);
    expect(written(runOf(4, 6)).lists).toMatchObject([{ revision: 4 }]);
  });

  it('writes all parts of the state at first, and then those that change', () => {
    const parts = (from: number, to: number) => written(runOf(from, to)).keys.filter((key) => key.startsWith('state'));
    expect(parts(0, 1)).toEqual(['state:channel', 'state:interactions', 'state:history']);
    expect(parts(2, 3)).toEqual(['state:interactions']);
    // Stored by its depth alone, which stays.
    expect(parts(5, 6)).toEqual([]);
  });

  it('writes the channel again when it repairs', () => {
    expect(written({ ...runOf(1, 2), isRepair: true })).toMatchObject({
      keys: expect.arrayContaining(['document', 'interactions']),
      lists: [{ revision: 0 }],
    });
  });

  it('has one frame for each event, whatever run the event is in', () => {
    const frames = (from: number, to?: number) => [...(channelFrames.frames?.(runOf(from, to)) ?? [])];
    const all = frames(0);
    expect(all.map(({ sequence }) => Number(sequence))).toEqual(events.map((_event, at) => at + 1));
    expect(events.flatMap((_event, at) => frames(at, at + 1))).toEqual(all);
  });
});
