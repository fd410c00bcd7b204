/* Commands while Redis keeps its connections and answers nothing, as a process that is paused. */
import { afterAll, beforeAll, expect, it } from 'vitest';

import { eventually } from '#test/support/eventually.ts';
import type { TestRedis } from '#test/support/redis.ts';
import { startTestApi, type Answer, type TestApi } from '#test/support/test-api.ts';

let api: TestApi<TestRedis>;

const send = (url: string, body: object): Promise<Answer> =>
  api.call({ method: 'POST', url: `/api/v1${url}`, key: api.rootKey, body });
const read = (url: string): Promise<Answer> => api.call({ method: 'GET', url: `/api/v1${url}`, key: api.rootKey });

beforeAll(async () => {
  api = await startTestApi({ redis: 'own' });
});
afterAll(() => api.stop());

it('counts as away once it owes replies, so that no command waits for it, and is back when it answers', async () => {
  const { redis } = api.stores.platform;
  const { json: agent } = await send('/agents', { name: 'Helper' });
  await api.stores.redis.pause();
  // What is under way needs replies.
  expect((await read(`/agents/${agent.id}`)).status).toBe(503);
  await eventually(() => !redis.isReady);
  const participants = [{ type: 'agent', id: agent.id }];
  const channels = await Promise.all(['a', 'b'].map((name) => send('/channels', { name, participants })));
  expect(channels.map(({ status }) => status)).toEqual([200, 200]);
  expect((await read(`/channels/${channels[0]?.json.id}`)).status).toBe(503);
  expect(redis.isReady).toBe(false);
  await api.stores.redis.resume();
  await eventually(async () => expect((await read(`/channels/${channels[0]?.json.id}`)).status).toBe(200));
});
