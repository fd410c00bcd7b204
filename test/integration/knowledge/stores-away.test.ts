import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { afterAll, beforeAll, expect, it } from 'vitest';

import { eventually } from '#test/support/eventually.ts';
import type { TestRedis } from '#test/support/redis.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';

const GRAPHS = '/api/v1/knowledge';

let api: TestApi<TestRedis>;
let id: string;

beforeAll(async () => {
  api = await startTestApi({ redis: 'own' });
  id = (await call('POST', GRAPHS, { name: 'Scientists' })).json.id;
});
afterAll(() => api.stop());

const call = (method: Call['method'], url: string, body?: object): Promise<Answer> =>
  api.call({ method, url, key: api.rootKey, ...(body !== undefined && { body }) });

const facts = { nodes: [{ name: 'Ada' }] };
const requests = [
  () => call('GET', GRAPHS),
  () => call('GET', `${GRAPHS}/${id}`),
  () => call('PATCH', `${GRAPHS}/${id}`, { name: 'x' }),
  () => call('POST', `${GRAPHS}/${id}/facts`, facts),
  () => call('DELETE', `${GRAPHS}/${id}`),
];

it('facts that were written before the index failed are not reported as refused', async () => {
  const folder = join(api.stores.platform.cacheDir, 'search');
  mkdirSync(dirname(folder), { recursive: true });
  writeFileSync(folder, '');
  const written = await call('POST', `${GRAPHS}/${id}/facts`, facts);
  expect(written).toMatchObject({ status: 503, json: { code: 'outcome_unknown' } });
  expect(written.headers['retry-after']).toBeDefined();
  expect(await call('GET', `${GRAPHS}/${id}/search`)).toMatchObject({
    status: 503,
    json: { code: 'store_unavailable' },
  });
  rmSync(folder);
  expect((await call('GET', `${GRAPHS}/${id}/search`)).json).toMatchObject({ total_nodes: 1 });
});

it('facts are added without Redis, and answered again when it is back; reads answer 503 meanwhile', async () => {
  await api.stores.redis.kill9();
  for (const request of requests.slice(0, 2)) {
    const answer = await request?.();
    expect(answer).toMatchObject({ status: 503, json: { code: 'store_unavailable' } });
    expect(answer?.headers['retry-after']).toBeDefined();
  }
  expect((await call('POST', `${GRAPHS}/${id}/facts`, facts)).status).toBe(200);
  await api.stores.redis.restart();
  await eventually(async () => expect((await call('POST', `${GRAPHS}/${id}/facts`, facts)).status).toBe(200));
  await eventually(async () =>
    expect(await call('GET', `${GRAPHS}/${id}`)).toMatchObject({ status: 200, json: { node_count: 1 } }),
  );
});

it('everything answers 503 without the event store, except what this process remembers', async () => {
  // A process that begins to listen after a gap reads keys again, which it could not without the event store.
  await eventually(() => api.features.announcements.areReceivedSince(performance.now(), 1_000));
  await call('PATCH', `${GRAPHS}/${id}`, { description: 'People' });
  await api.stores.platform.store.close();
  expect((await call('GET', `${GRAPHS}/${id}`)).status).toBe(200);
  const [, , ...commands] = requests;
  for (const request of [...commands, () => call('GET', `${GRAPHS}/${id}/search`)]) {
    const answer = await request();
    expect(answer.status).toBe(503);
    expect(answer.headers['retry-after']).toBeDefined();
  }
});
