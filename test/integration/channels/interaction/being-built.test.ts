/* While read models are being built, they hold the beginning of a channel before its end. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { interactionId } from '#libs/features/channels/index.ts';
import { sequenceOf } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { channelKeys } from '#libs/features/channels/channel.keys.ts';

const POSTS = 30;
const FILTER = { order: 'asc', includeIncomplete: false, includeToolCallUpdates: false } as const;
const FIRST_PAGE = { size: 100, offset: 0, after: null };

let test: TestPlatform;
let features: Features;
const organizationId = newId();
const channelId = newId();
/** Completed after all others were posted. */
let late: number;

beforeAll(async () => {
  test = await startTestPlatform();
  features = composeFeatures(test.platform);
  await features.channels.create(context(channelId), { id: channelId, ...PLAIN_CHANNEL, name: 'before' });
  await post('root', null, true);
  late = await post('late', 'root', false);
  for (let n = 2; n < POSTS; n++) await post(`span-${n}`, 'root', true);
  await features.channels.interactions.complete(context(), placeOf(late), [{ type: 'text', text: 'done' }], 'operator');
  await features.channels.update(context(), channelId, { name: 'now' });
});
afterAll(() => test.stop());

/** The state after a projector has applied the first ten events of the channel. */
beforeEach(async () => {
  const beginning: StoredEvent[] = [];
  for await (const event of test.platform.store.readStream(`channel-${channelId}`, { limit: 10 }))
    beginning.push(event);
  await features.state.clear();
  await features.state.begin();
  await features.projector.applyStored(beginning);
});

const context = (commandId = newId()): CommandContext => serviceCommand(organizationId, { commandId });

const placeOf = (sequence: number) => ({ channelId, sequence: sequence as never });

async function post(spanId: string, parentSpanId: string | null, complete: boolean): Promise<number> {
  const result = await features.channels.interactions.post(
    context(),
    channelId,
    {
      participant: { type: 'system' },
      content: [],
      contentRole: 'channel_notification',
      complete,
      metadata: null,
      invocationConfig: null,
      turnId: null,
      spanId,
      parentSpanId,
      organizationApplication: null,
    },
    { spanIsNew: true },
  );
  if (!result.ok) throw new Error(result.rejection.reason);
  return sequenceOf(result.revision);
}

describe('while read models are being built', () => {
  it('a list of interactions has all interactions of the log', async () => {
    const { queries } = features.channels;
    const list = await queries.list(organizationId, channelId, FILTER, FIRST_PAGE, null);
    expect([list?.total, list?.items.length, list?.hasNext]).toEqual([POSTS, POSTS, false]);
  });

  it('an interaction is shown with its whole tree', async () => {
    const { queries } = features.channels;
    const audience = { reader: null, includeIncomplete: true, includeToolCallUpdates: false };
    const nested = await queries.nested(organizationId, placeOf(2), audience);
    expect(JSON.parse(String(nested)).nested_interactions).toHaveLength(POSTS - 1);
  });

  it('an interaction is shown in its current state', async () => {
    const audience = { reader: null, includeIncomplete: false };
    const found = await features.channels.queries.interaction(organizationId, placeOf(late), audience);
    expect(JSON.parse(String(found))).toMatchObject({
      id: interactionId(placeOf(late)),
      complete: true,
      content: [{ type: 'text', text: 'done' }],
    });
  });

  it('a channel is shown in its current state', async () => {
    const channel = await features.channels.channel(organizationId, channelId);
    expect(JSON.parse(String(channel?.json))).toMatchObject({ name: 'now' });
  });

  it('a list is not taken for complete when its channel is deleted meanwhile', async () => {
    const { queries } = features.channels;
    await features.projector.catchUp('channel', organizationId, channelId);
    const { redis } = test.platform;
    const all = channelKeys(organizationId, channelId).index('all');
    const send = redis.send.bind(redis);
    redis.send = async (key, command) => {
      if (key === all) await features.state.clear();
      return send(key, command);
    };
    try {
      const list = queries.list(organizationId, channelId, FILTER, FIRST_PAGE, null);
      await expect(list).rejects.toMatchObject({ code: 'not_caught_up' });
    } finally {
      redis.send = send;
    }
  });
});
