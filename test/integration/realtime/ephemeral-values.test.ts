import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { EphemeralValues, FRAME_FLAG } from '#libs/platform/live/index.ts';
import { composeFeatures } from '#services/features.ts';
import { eventually } from '#test/support/eventually.ts';
import { subscribeToTopic } from '#test/support/realtime/live-topic.ts';
import { type Answer, startTestApi, type TestApi } from '#test/support/test-api.ts';
import { keysIn } from '#test/support/redis-commands.ts';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.stop());

const post = (channelId: string, body: object): Promise<Answer> =>
  api.call({ method: 'POST', url: `/api/v1/channels/${channelId}/interactions`, key: api.rootKey, body });
const newChannel = async (): Promise<string> =>
  (await api.call({ method: 'POST', url: '/api/v1/channels', key: api.rootKey, body: { name: 'A' } })).json.id;

const update = (channelId: string, toolCallId: string, sequence: number): Promise<Answer> => {
  const item = { type: 'tool_call_update', tool_name: 't', tool_call_id: toolCallId, sequence, update: { text: 'x' } };
  return post(channelId, { content_role: 'tool_call_update', content: [item] });
};

describe('an update of a tool call', () => {
  it('is published if it is stored, and only then', async () => {
    const channelId = await newChannel();
    const { platform } = api.stores;
    const topic = await subscribeToTopic(platform, api.organizationId, channelId);
    const first = await update(channelId, 'call 1/ä', 5);
    await update(channelId, 'call 1/ä', 4);
    await update(channelId, 'call 1/ä', 5);
    const later = await update(channelId, 'call 1/ä', 6);
    const other = await update(channelId, 'call-2', -1);
    const published = (key: string, n: number, { json: data }: Answer): object => ({
      flags: FRAME_FLAG.ephemeral,
      key,
      frame: { frame: 'ephemeral', key, n, data, ttl_ms: 300_000 },
    });
    const key = 'tool_call:call%201%2F%C3%A4';
    const [one, two, three] = [
      published(key, 5, first),
      published(key, 6, later),
      published('tool_call:call-2', -1, other),
    ];
    expect(await topic.take()).toEqual([one, two, three]);

    const { values } = composeFeatures(platform).realtime;
    const current = (await Promise.all(values.map((one) => one.current(api.organizationId, channelId)))).flat();
    expect(current.map(({ flags, key }) => ({ flags, key }))).toEqual([
      { flags: FRAME_FLAG.ephemeral, key },
      { flags: FRAME_FLAG.ephemeral, key: 'tool_call:call-2' },
    ]);
    const [frame] = current.map(({ json }) => JSON.parse(json));
    expect(frame).toMatchObject({ frame: 'ephemeral', key, n: 6, data: later.json });
    expect(frame.ttl_ms).toBeGreaterThan(200_000);
    expect(frame.ttl_ms).toBeLessThanOrEqual(300_000);
    topic.stop();
  });
});

describe('an ephemeral value', () => {
  const kind = { name: 'test', keyPrefix: 'test', ttlMs: 60_000, max: 3 };
  const own = ['organization', 'channel'] as const;

  it('gets increasing numbers from every process, even after its removal', async () => {
    const { platform } = api.stores;
    const values = [new EphemeralValues(platform.redis, kind), new EphemeralValues(platform.redis, kind)] as const;
    const topic = await subscribeToTopic(platform, ...own);
    for (let n = 0; n < 5; n++) await values[n % 2 === 0 ? 0 : 1].put(...own, { name: 'a', json: `{"n":${n}}` });
    await values[0].end(...own, [
      { name: 'a', json: '{"gone":true}' },
      { name: 'never there', json: '{"gone":true}' },
    ]);
    expect(await values[1].ofChannel(...own)).toEqual([]);
    await values[1].put(...own, { name: 'a', json: '{"back":true}' });
    const received = await topic.take();
    expect(received.map(({ frame }) => frame.data)).toEqual([
      ...[0, 1, 2, 3, 4].map((n) => ({ n })),
      { gone: true },
      { back: true },
    ]);
    expect(received.map(({ frame }) => frame.ttl_ms)).toEqual([60_000, 60_000, 60_000, 60_000, 60_000, 0, 60_000]);
    const numbers = received.map(({ frame }) => frame.n);
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    topic.stop();
  });

  it('is deleted for newer ones beyond the limit, and when it expires', async () => {
    const values = new EphemeralValues(api.stores.platform.redis, { ...kind, ttlMs: 300 });
    const there = ['organization', 'another'] as const;
    for (const name of ['a', 'b', 'c', 'd']) await values.put(...there, { name, json: '{}' });
    expect((await values.ofChannel(...there)).map(({ name }) => name)).toEqual(['b', 'c', 'd']);
    expect(await values.current(...there)).toMatchObject([{ key: 'test:b' }, { key: 'test:c' }, { key: 'test:d' }]);
    await eventually(async () => expect(await values.current(...there)).toEqual([]));
    await eventually(async () => {
      expect(await keysIn(api.stores.platform.redis, 'parley:live:{organization:another}*')).toEqual([]);
    });
  });
});
