/* The cost of a read of the past does not depend on how many events came before or after. */
import { afterAll, beforeAll, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { streamRevision } from '#libs/kernel/event.ts';
import type { EventToAppend } from '#libs/platform/eventstore/index.ts';
import { BLOCK } from '#libs/platform/readmodel/history.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { PLAIN_CHANNEL } from '#test/support/commands.ts';
import { CountingStore } from '#test/support/counting-store.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';

const STARTED_AT = Date.UTC(2026, 0, 1);
const organizationId = newId();

let test: TestPlatform;
let features: Features;
let store: CountingStore;

beforeAll(async () => {
  test = await startTestPlatform();
  store = new CountingStore(test.platform.store);
  features = composeFeatures({ ...test.platform, store });
});
afterAll(() => test.stop());

function event(index: number, type: string, data: object): EventToAppend {
  const id = newId();
  const at = new Date(STARTED_AT + index * 1_000).toISOString();
  const actor = { type: 'service', id: 'history' } as const;
  return {
    id,
    type,
    data,
    metadata: { at, organizationId, actor, commandId: id, $correlationId: id, $causationId: id },
  };
}

/** Renamed now and then; every tenth interaction is begun, extended later, and completed last. */
function eventAt(index: number, channelId: string): EventToAppend {
  const text = (said: string) => [{ type: 'text', text: said }];
  if (index === 0) {
    return event(index, 'ChannelCreated.v1', { id: channelId, ...PLAIN_CHANNEL, name: 'first' });
  }
  if (index % 10 === 4) return event(index, 'ChannelRenamed.v1', { name: `renamed ${index}` });
  if (index % 10 === 7) {
    return event(index, 'InteractionContentAppended.v1', { sequence: index - 1, content: text('and') });
  }
  if (index % 10 === 9) {
    return event(index, 'InteractionCompleted.v1', { sequence: index - 3, content: null });
  }
  return event(index, 'InteractionPosted.v1', {
    participant: { type: 'system' },
    content: text(`said ${index}`),
    contentRole: 'user_message',
    complete: index % 10 !== 5,
    metadata: null,
    invocationConfig: null,
    turnId: null,
    spanId: `span-${index}`,
    parentSpanId: index % 10 <= 5 ? null : `span-${index - (index % 10) + 5}`,
    depth: 1,
    organizationApplication: null,
  });
}

async function channelWith(count: number): Promise<string> {
  const channelId = newId();
  for (let from = 0; from < count; from += 400) {
    const events = Array.from({ length: Math.min(400, count - from) }, (_, at) => eventAt(from + at, channelId));
    await test.platform.store.append(`channel-${channelId}`, streamRevision(from - 1), events);
    await features.projector.catchUp('channel', organizationId, channelId);
  }
  return channelId;
}

/** The maximum count of events that any of the reads took from the store, at many points of the channel. */
async function mostEventsRead(channelId: string, count: number): Promise<number> {
  const { channels } = features;
  const { queries } = channels;
  let most = 0;
  const measure = async (read: () => Promise<unknown>): Promise<void> => {
    store.eventsRead = 0;
    expect(await read()).not.toBeNull();
    most = Math.max(most, store.eventsRead);
  };
  for (const part of [0, 0.3, 0.5, 0.95]) {
    const sequence = Math.floor((count * part) / 10) * 10 + 8;
    const page = { size: 10, offset: 0, after: null };
    for (const point of [{ sequence }, { at: new Date(STARTED_AT + (sequence - 1) * 1_000).toISOString() }]) {
      await measure(() => channels.channelAt(organizationId, channelId, point));
      for (const includeIncomplete of [true, false]) {
        const filter = { order: 'desc', includeIncomplete, includeToolCallUpdates: false } as const;
        await measure(() =>
          queries.at(organizationId, channelId, point, (view) =>
            queries.list(organizationId, channelId, filter, page, null, view),
          ),
        );
      }
      // Begun and extended, and not yet completed at that point.
      const place = { channelId, sequence: (sequence - 2) as never };
      await measure(() =>
        queries.at(organizationId, channelId, point, (view) =>
          queries.nested(
            organizationId,
            place,
            { reader: null, includeIncomplete: true, includeToolCallUpdates: false },
            view,
          ),
        ),
      );
    }
  }
  return most;
}

it('reads no more events of a channel with 5,000 than a block or two, as of one with 20', async () => {
  const bound = 2 * BLOCK + 20;
  const few = await mostEventsRead(await channelWith(20), 20);
  expect(few).toBeGreaterThan(0);
  expect(few).toBeLessThanOrEqual(bound);
  const many = await mostEventsRead(await channelWith(5_000), 5_000);
  expect(many).toBeGreaterThan(0);
  expect(many).toBeLessThanOrEqual(bound);
});
