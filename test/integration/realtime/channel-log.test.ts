import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { parseInteractionId } from '#libs/features/channels/index.ts';
import { type ChannelSequence, streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { EventStore, EventToAppend } from '#libs/platform/eventstore/index.ts';
import { type EventFrame, FRAME_FLAG } from '#libs/platform/live/index.ts';
import { BLOCK } from '#libs/platform/readmodel/history.ts';
import { composeFeatures, composeReadModels, type Features } from '#services/features.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import {
  contextOf,
  createChannel,
  live,
  type LiveChannel,
  newChannel,
  type Published,
  recordTopic,
} from '#test/support/realtime/channel-life.ts';
import { flush } from '#test/support/redis-commands.ts';
import { rounds } from '#test/support/rounds.ts';

let test: TestPlatform;
let features: Features;

beforeAll(async () => {
  test = await startTestPlatform();
  features = composeFeatures(test.platform);
});
afterAll(() => test.stop());

async function pagesAfter(channel: LiveChannel, after: number, of = features): Promise<(readonly EventFrame[])[]> {
  const pages: (readonly EventFrame[])[] = [];
  const { organizationId, channelId } = channel;
  for await (const page of of.realtime.log.framesAfter(organizationId, channelId, after as ChannelSequence)) {
    pages.push(page);
  }
  return pages;
}

async function framesAfter(channel: LiveChannel, after: number, of = features): Promise<EventFrame[]> {
  return (await pagesAfter(channel, after, of)).flat();
}

function headOf({ organizationId, channelId }: LiveChannel): Promise<ChannelSequence | null> {
  return features.realtime.log.head(organizationId, channelId);
}

/** The published frames, once each. */
function eventsIn({ frames }: Published): { sequence: number; json: string; flags: number }[] {
  return [...frames]
    .map(([sequence, [first]]) => ({ sequence, json: first?.json ?? '', flags: first?.flags ?? -1 }))
    .sort((a, b) => a.sequence - b.sequence);
}

/** The test's store, which calls `afterAppend` before the events of an append are published. */
function storeWith(afterAppend: (stream: string) => Promise<void>): EventStore {
  const { store } = test.platform;
  return {
    async append(stream, ...args) {
      const result = await store.append(stream, ...args);
      await afterAppend(stream);
      return result;
    },
    readStream: (...args) => store.readStream(...args),
    ping: () => store.ping(),
    close: () => store.close(),
  };
}

function eventOf(channel: LiveChannel, type: string, data: object): EventToAppend {
  const { commandId, at, actor, organizationId } = contextOf(channel.organizationId, newId(), 0);
  const metadata = { at, organizationId, actor, commandId, $correlationId: commandId, $causationId: commandId };
  return { id: newId(), type, data, metadata };
}

/** Appends an event without publishing it. */
async function appendRaw(channel: LiveChannel, type: string, data: object): Promise<void> {
  const head = (await headOf(channel)) ?? 0;
  const revision = streamRevision(head - 1);
  await test.platform.store.append(`channel-${channel.channelId}`, revision, [eventOf(channel, type, data)]);
}

describe('the frames of a channel', () => {
  it('are the same bytes whether they are published or read from the log, from any sequence on', async () => {
    const channel = { organizationId: newId(), channelId: newId() };
    const topic = await recordTopic(test.platform.topics, channel);
    await createChannel(features, channel);
    // Two processes, from the channel's point of view.
    await live([features, composeFeatures(test.platform)], channel, { seed: 11, commands: 450 });
    const head = (await headOf(channel)) ?? 0;
    expect(head).toBeGreaterThan(2 * BLOCK);
    await eventually(() => topic.frames.size === head);

    const published = eventsIn(topic);
    expect(published.map(({ sequence }) => sequence)).toEqual(Array.from({ length: head }, (_, index) => index + 1));
    // Longer runs ask from every sequence; each run from those around the edges of blocks.
    const step = Math.max(1, Math.round(5 / rounds(1)));
    for (let after = 0; after <= head; after++) {
      if (after % step > 0 && (after + 2) % BLOCK > 4) continue;
      expect(await framesAfter(channel, after), `after ${after}`).toEqual(published.slice(after));
    }
    topic.stop();
  }, 120_000);

  it('are of every type, one for each event, with the answer of REST as of it', async () => {
    const channel = await newChannel(features);
    const { organizationId, channelId } = channel;
    await live([features], channel, { seed: 5, commands: 300 });
    await features.channels.archive(contextOf(organizationId, newId(), 0), channelId);
    const frames = await framesAfter(channel, 0);
    expect(frames.map(({ sequence }) => sequence)).toEqual(frames.map((_, index) => index + 1));
    const parsed = frames.map(({ json }) => JSON.parse(json) as { type: string; seq: number; data: { id: string } });
    expect([...new Set(parsed.map(({ type }) => type))].sort()).toEqual([
      'channel.archived',
      'channel.created',
      'channel.updated',
      'interaction.completed',
      'interaction.failed',
      'interaction.posted',
      'interaction.updated',
      'mention_invite_prompt.dismissed',
      'participant.joined',
      'participant.left',
      'reaction.added',
      'reaction.removed',
      'receipt.added',
    ]);
    for (const { type, seq, data } of parsed) {
      const then = await restAt(channel, { type, seq, id: data.id });
      expect(JSON.stringify(data), `${type} at ${seq}`).toBe(then ?? JSON.stringify(data));
    }
  });

  it('have flags for optional frames', async () => {
    const channel = await newChannel(features);
    await live([features], channel, { seed: 7, commands: 200 });
    await features.channels.archive(contextOf(channel.organizationId, newId(), 0), channel.channelId);
    for (const { json, flags } of await framesAfter(channel, 0)) {
      const { type, data } = JSON.parse(json) as { type: string; data: Record<string, unknown> };
      const isInteraction = type.startsWith('interaction.');
      expect((flags & FRAME_FLAG.nested) > 0).toBe(isInteraction && data['parent_span_id'] !== null);
      expect((flags & FRAME_FLAG.incomplete) > 0).toBe(isInteraction && data['complete'] === false);
      const isUser = type === 'participant.joined' && data['type'] === 'authenticated_user';
      expect((flags & FRAME_FLAG.access) > 0).toBe(
        isUser || type === 'participant.left' || type === 'channel.archived',
      );
    }
  });

  it('contain the participants that joined and left, with their ids', async () => {
    const channel = await newChannel(features);
    const { organizationId, channelId } = channel;
    const commands = features.channels;
    const participant = {
      type: 'authenticated_user',
      participantId: 'record-1',
      userId: 'user-1',
      displayName: 'Ada',
      imageUrl: null,
      isOwner: true,
    } as const;
    await commands.addParticipant(contextOf(organizationId, newId(), 1), channelId, participant);
    await commands.removeParticipant(contextOf(organizationId, newId(), 2), channelId, 'record-1');
    const data = {
      participant_id: 'record-1',
      type: 'authenticated_user',
      user_id: 'user-1',
      id: 'record-1',
      display_name: 'Ada',
      image_url: null,
      is_owner: true,
    };
    const actor = { type: 'user', id: 'user-1', key_id: null, on_behalf_of: null };
    const frames = await framesAfter(channel, 1);
    expect(frames.map(({ json }) => JSON.parse(json) as unknown)).toEqual([
      { frame: 'event', seq: 2, type: 'participant.joined', at: '2026-01-01T00:00:01.000Z', actor, data },
      { frame: 'event', seq: 3, type: 'participant.left', at: '2026-01-01T00:00:02.000Z', actor, data },
    ]);
  });

  it('exist for events of unknown types, too, without data', async () => {
    const channel = await newChannel(features);
    await appendRaw(channel, 'SomethingLater.v9', { of: 'another version' });
    await live([features], channel, { seed: 3, commands: 30 });
    await appendRaw(channel, 'SomethingLater.v9', {});
    const frames = await framesAfter(channel, 0);
    expect(frames.map(({ sequence }) => sequence)).toEqual(frames.map((_, index) => index + 1));
    expect(frames[1]).toEqual({
      sequence: 2,
      flags: 0,
      json: '{"frame":"event","seq":2,"type":"unknown","at":"2026-01-01T00:00:00.000Z","actor":{"type":"user","id":"user-1","key_id":null,"on_behalf_of":null},"data":null}',
    });
    expect(frames.at(-1)?.json).toContain('"type":"unknown"');
    for (const after of [1, 2, 3, frames.length - 1]) {
      expect(await framesAfter(channel, after)).toEqual(frames.slice(after));
    }
  });
});

/** The answer of REST, as of the sequence, for the resource of an event; null for an event without one. */
async function restAt(
  { organizationId, channelId }: LiveChannel,
  { type, seq, id }: { readonly type: string; readonly seq: number; readonly id: string },
): Promise<string | null> {
  if (type.startsWith('channel.')) {
    const channel = await features.channels.channelAt(organizationId, channelId, { sequence: seq });
    return channel?.json.toString() ?? 'no channel';
  }
  const place = parseInteractionId(id);
  if (!type.startsWith('interaction.') || place === null) return null;
  const { queries } = features.channels;
  const found = await queries.at(organizationId, channelId, { sequence: seq }, (view) =>
    queries.interaction(organizationId, place, { reader: null, includeIncomplete: true }, view),
  );
  return found?.toString() ?? 'no interaction';
}

describe('the publication of frames', () => {
  it('happens if another process has applied the event first, too', async () => {
    const other = composeReadModels(test.platform);
    const channel = { organizationId: newId(), channelId: newId() };
    const store = storeWith(async () => {
      await other.projector.catchUp('channel', channel.organizationId, channel.channelId);
    });
    const slow = composeFeatures({ ...test.platform, store });
    const topic = await recordTopic(test.platform.topics, channel);
    await createChannel(slow, channel);
    await live([slow], channel, { seed: 2, commands: 30 });
    const head = (await headOf(channel)) ?? 0;
    expect(head).toBeGreaterThan(10);
    await eventually(() => topic.frames.size === head);
    expect(eventsIn(topic)).toEqual(await framesAfter(channel, 0));
    // The other process has published its own event.
    expect(topic.heads.length).toBeGreaterThan(5);
    topic.stop();
  });

  it('happens if previous events had to be read first, too', async () => {
    const channel = await newChannel(features);
    const topic = await recordTopic(test.platform.topics, channel);
    await appendRaw(channel, 'ChannelRenamed.v1', { name: 'by one who died right after it' });
    const context = contextOf(channel.organizationId, newId(), 1);
    await composeFeatures(test.platform).channels.update(context, channel.channelId, { name: 'mine' });
    await eventually(() => topic.frames.has(3));
    expect(eventsIn(topic)).toEqual(await framesAfter(channel, 2));
    expect(topic.heads).toEqual([3]);
    topic.stop();
  });

  it('is only the head if stored events are applied', async () => {
    const channel = await newChannel(features);
    await live([features], channel, { seed: 4, commands: 30 });
    const head = (await headOf(channel)) ?? 0;
    const topic = await recordTopic(test.platform.topics, channel);
    await flush(test.platform.redis);
    await features.projector.catchUp('channel', channel.organizationId, channel.channelId);
    await eventually(() => topic.heads.length > 0);
    // A duplicate: nothing is published.
    await features.projector.catchUp('channel', channel.organizationId, channel.channelId);
    await appendRaw(channel, 'ChannelRenamed.v1', { name: 'unheard of' });
    await features.projector.catchUp('channel', channel.organizationId, channel.channelId);
    await eventually(() => topic.heads.at(-1) === head + 1);
    expect(topic.heads).toEqual([head, head + 1]);
    expect(topic.frames.size).toBe(0);
    topic.stop();
  });

  it('announces the head instead of events beyond the size of a message', async () => {
    const channel = await newChannel(features);
    const { organizationId, channelId } = channel;
    const text = (length: number) => [{ type: 'text', text: 'x'.repeat(length) }];
    const post = (index: number, length: number) =>
      features.channels.interactions.post(
        contextOf(organizationId, newId(), index),
        channelId,
        {
          participant: { type: 'system' },
          content: text(length),
          contentRole: 'agent_response',
          complete: false,
          metadata: null,
          invocationConfig: null,
          turnId: null,
          spanId: newId(),
          parentSpanId: null,
          organizationApplication: null,
        },
        { spanIsNew: true },
      );
    await post(1, 400_000);
    const topic = await recordTopic(test.platform.topics, channel);
    const place = { channelId, sequence: 2 as ChannelSequence };
    // They wait for the previous command and are appended together: each frame has all of the text.
    await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        features.channels.interactions.append(contextOf(organizationId, newId(), index), place, text(10), 'operator'),
      ),
    );
    await eventually(() => topic.heads.includes(12));
    const frames = await framesAfter(channel, 2);
    expect(frames).toHaveLength(10);
    expect(topic.frames.size).toBeLessThan(10);
    for (const one of eventsIn(topic)) expect(frames).toContainEqual(one);
    topic.stop();
  });
});

describe('the log of a channel', () => {
  it("has no head and no frames of an unknown channel, or of another organization's", async () => {
    const channel = await newChannel(features);
    const missing = { ...channel, channelId: newId() };
    const foreign = { ...channel, organizationId: newId() };
    expect([await headOf(channel), await headOf(missing), await headOf(foreign)]).toEqual([1, null, null]);
    expect([await pagesAfter(missing, 0), await pagesAfter(foreign, 0)]).toEqual([[], []]);
  });

  it('has no frames after its head, nor after a sequence beyond it', async () => {
    const channel = await newChannel(features);
    expect(await pagesAfter(channel, 1)).toEqual([]);
    expect(await pagesAfter(channel, 1_000)).toEqual([]);
  });

  it('has events that no read model has', async () => {
    const channel = await newChannel(features);
    await appendRaw(channel, 'ChannelRenamed.v1', { name: 'unheard of' });
    expect(await headOf(channel)).toBe(2);
    const [frame] = await framesAfter(channel, 1);
    expect(frame?.json).toContain('"name":"unheard of"');
  });

  it('has the same frames after the read models were lost', async () => {
    const channel = await newChannel(features);
    await live([features], channel, { seed: 9, commands: 300 });
    const frames = await framesAfter(channel, 0);
    expect(frames.length).toBeGreaterThan(BLOCK);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: frames.length }), async (after) => {
        await flush(test.platform.redis);
        expect(await framesAfter(channel, after, composeFeatures(test.platform))).toEqual(frames.slice(after));
      }),
      { numRuns: 12 },
    );
  });

  it('is read in pages of limited length and size', async () => {
    const channel = await newChannel(features);
    const many = Array.from({ length: 1_100 }, (_, index) => {
      const text = index < 1_050 ? 'short' : 'x'.repeat(200_000);
      return eventOf(channel, 'InteractionPosted.v1', {
        participant: { type: 'system' },
        content: [{ type: 'text', text }],
        contentRole: 'user_message',
        complete: true,
        metadata: null,
        invocationConfig: null,
        turnId: null,
        spanId: `span-${index}`,
        parentSpanId: null,
        depth: 1,
        organizationApplication: null,
      });
    });
    const stream = `channel-${channel.channelId}`;
    await test.platform.store.append(stream, streamRevision(0), many.slice(0, 1_050));
    for (let at = 1_050; at < 1_100; at++) {
      await test.platform.store.append(stream, streamRevision(at), many.slice(at, at + 1));
    }
    const pages = await pagesAfter(channel, 0);
    expect(pages.flat().map(({ sequence }) => sequence)).toEqual(
      Array.from({ length: 1_101 }, (_, index) => index + 1),
    );
    for (const page of pages) {
      expect(page.length).toBeLessThanOrEqual(500);
      expect(page.slice(0, -1).reduce((size, { json }) => size + json.length, 0)).toBeLessThan(1024 * 1024);
    }
    expect(pages.length).toBeLessThan(20);
  });
});
