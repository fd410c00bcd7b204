import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { createApiKey } from '#libs/platform/http/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { type Answer, startTestApi, type TestApi } from '#test/support/test-api.ts';
import type { TestRedis } from '#test/support/redis.ts';

const UNKNOWN = 'parley_live_4r7G8b0y1h9g6NUEKnrG3uubP4cn8R3mFAkjiiRkCmk0y2hqE';

let api: TestApi<TestRedis>;
let fresh: string;

beforeAll(async () => {
  api = await startTestApi({ redis: 'own' });
});
afterAll(() => api.stop());

/** A key that no process has cached. */
async function newKey(): Promise<string> {
  const body = { name: 'fresh', scopes: ['read', 'write', 'admin'], access: 'organization' };
  return (await api.call({ method: 'POST', url: '/api/v1/keys', key: api.rootKey, body })).json.key;
}

/** A command that needs only the log. */
const write = (key: string): Promise<Answer> =>
  api.call({ method: 'POST', url: '/api/v1/users', key, body: { display_name: 'Ada' } });

describe('authentication while a store is unavailable', () => {
  it('reads keys, including new ones, from the log without Redis, and serves reads again when it is available', async () => {
    const keys = [await newKey(), await newKey(), await newKey()] as const;

    await api.stores.redis.kill9();
    await eventually(async () => (await write(keys[0])).status === 200);
    expect((await write(keys[1])).status).toBe(200);
    expect((await write(UNKNOWN)).status).toBe(401);
    const reading = await api.call({ method: 'GET', url: '/api/v1/users', key: keys[0] });
    expect(reading.status).toBe(503);
    expect(reading.headers['retry-after']).toBeDefined();

    await api.stores.redis.restart();
    fresh = keys[2];
    await eventually(async () => {
      const answer = await api.call({ method: 'GET', url: '/api/v1/users', key: fresh });
      return answer.status === 200;
    });
  });

  it('accepts recently read keys without the log, and answers 503, not 401, for others', async () => {
    const keys = [await newKey(), await newKey()] as const;
    await eventually(() => api.features.announcements.areReceivedSince(performance.now(), 1_000));
    const read = (): Promise<Answer> => api.call({ method: 'GET', url: '/api/v1/users', key: keys[0] });
    expect((await read()).status).toBe(200);
    await api.stores.platform.store.close();
    // 503 while this process, on a busy machine, cannot prove that no announcement is missing.
    await eventually(async () => (await read()).status === 200);
    expect((await write(keys[0])).status).toBe(503);
    for (const key of [keys[1], createApiKey()]) {
      const answer = await write(key);
      expect(answer.status).toBe(503);
      expect(answer.headers['retry-after']).toBeDefined();
    }
    expect((await write('junk')).status).toBe(401);
  });
});
