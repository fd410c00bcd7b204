/* The cost of a replay from the log does not depend on the length of the channel. */
import { afterAll, beforeAll, expect, it } from 'vitest';

import { type ChannelSequence, streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { EventToAppend } from '#libs/platform/eventstore/index.ts';
import { BLOCK } from '#libs/platform/readmodel/history.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { CountingStore } from '#test/support/counting-store.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { contextOf, type LiveChannel, newChannel } from '#test/support/realtime/channel-life.ts';

/** Interactions that start in a block are completed in the next one, after this many events each. */
const OPEN_PER_BLOCK = 5;
const APPENDS = 6;

let test: TestPlatform;
let features: Features;
let store: CountingStore;

beforeAll(async () => {
  test = await startTestPlatform();
  store = new CountingStore(test.platform.store);
  features = composeFeatures({ ...test.platform, store });
});
afterAll(() => test.stop());

/**
 * In each block, the first events complete interactions of the previous block, the last ones start new interactions and
 * add to them; the others rename the channel.
 */
function eventAt(revision: number): { type: string; data: object } {
  const place = revision % BLOCK;
  const begun = BLOCK - OPEN_PER_BLOCK * APPENDS;
  if (place < OPEN_PER_BLOCK && revision >= BLOCK) {
    const sequence = revision - place - BLOCK + begun + place * APPENDS + 1;
    return { type: 'InteractionCompleted.v1', data: { sequence, content: null } };
  }
  if (place < begun) return { type: 'ChannelRenamed.v1', data: { name: `renamed ${revision}` } };
  const content = [{ type: 'text', text: `said ${revision}` }];
  const since = (place - begun) % APPENDS;
  if (since > 0) return { type: 'InteractionContentAppended.v1', data: { sequence: revision - since + 1, content } };
  return {
    type: 'InteractionPosted.v1',
    data: {
      participant: { type: 'system' },
      content,
      contentRole: 'agent_response',
      complete: false,
      metadata: null,
      invocationConfig: null,
      turnId: null,
      spanId: `span-${revision}`,
      parentSpanId: null,
      depth: 1,
      organizationApplication: null,
    },
  };
}

async function channelWith(count: number): Promise<LiveChannel> {
  const channel = await newChannel(features);
  const { organizationId, channelId } = channel;
  for (let from = 1; from < count; from += 400) {
    const events = Array.from({ length: Math.min(400, count - from) }, (_, index): EventToAppend => {
      const { commandId, at, actor } = contextOf(organizationId, newId(), from + index);
      const metadata = { at, organizationId, actor, commandId, $correlationId: commandId, $causationId: commandId };
      return { id: newId(), ...eventAt(from + index), metadata };
    });
    await test.platform.store.append(`channel-${channelId}`, streamRevision(from - 1), events);
  }
  await features.projector.catchUp('channel', organizationId, channelId);
  return channel;
}

/** The largest number of events that were read beyond those of the page, from any sequence. */
async function costToBegin({ organizationId, channelId }: LiveChannel, count: number): Promise<number> {
  let most = 0;
  for (const part of [0, 0.31, 0.5, 0.8, 0.99]) {
    for (const within of [0, 3, BLOCK / 2, BLOCK - 1]) {
      const after = Math.min(count - 1, Math.floor((count * part) / BLOCK) * BLOCK + within);
      store.eventsRead = 0;
      const pages = features.realtime.log.framesAfter(organizationId, channelId, after as ChannelSequence);
      for await (const page of pages) {
        expect(page[0]?.sequence).toBe(after + 1);
        // Completes interactions of the previous block, and shows all their text.
        expect(page.every(({ json }) => !json.endsWith('"data":null}'))).toBe(true);
        most = Math.max(most, store.eventsRead - page.length);
        break;
      }
    }
  }
  return most;
}

it('a replay from any of 5,000 events costs one block, as in a channel with 200', async () => {
  const bound = BLOCK + OPEN_PER_BLOCK * APPENDS;
  const few = await costToBegin(await channelWith(200), 200);
  expect(few).toBeGreaterThan(0);
  expect(few).toBeLessThanOrEqual(bound);
  const many = await costToBegin(await channelWith(5_000), 5_000);
  expect(many).toBeGreaterThan(0);
  expect(many).toBeLessThanOrEqual(bound);
}, 120_000);

it('the head is found by reading one event', async () => {
  const { organizationId, channelId } = await channelWith(2_000);
  store.eventsRead = 0;
  expect(await features.realtime.log.head(organizationId, channelId)).toBe(2_000);
  expect(store.eventsRead).toBe(1);
});
