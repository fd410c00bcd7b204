/* Search over messages while Redis or the event store is away. */
import { afterAll, beforeAll, expect, it } from 'vitest';

import { eventually } from '#test/support/eventually.ts';
import { startTestApi, type TestApi } from '#test/support/test-api.ts';
import type { TestRedis } from '#test/support/redis.ts';

let api: TestApi<TestRedis>;

beforeAll(async () => {
  api = await startTestApi({ redis: 'own' });
});
afterAll(() => api?.stop());

it('is unavailable while Redis is, and finds everything afterwards', async () => {
  const call = (method: 'GET' | 'POST', path: string, body?: object) =>
    api.call({ method, url: `/api/v1/${path}`, key: api.rootKey, ...(body && { body }) });
  const { json: channel } = await call('POST', 'channels', { name: 'Lab' });
  const post = (text: string) =>
    call('POST', `channels/${channel.id}/interactions`, { content: [{ type: 'text', text }] });
  await post('the first kestrel');
  const found = async () => (await call('GET', 'interactions/search?q=kestrel')).json.meta?.total;
  expect(await found()).toBe(1);
  const { redis } = api.stores;
  await redis.kill9();
  const refused = await call('GET', 'interactions/search?q=kestrel');
  expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': expect.anything() } });
  expect(refused.bytes).not.toContain('first');
  await redis.restart();
  await eventually(async () => expect(await found()).toBe(1));
  await post('the second kestrel');
  expect(await found()).toBe(2);
});
