import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { HostSlots } from '#libs/features/crawls/host-slots.ts';
import { newId } from '#libs/kernel/ids.ts';
import { connectRedis, type RedisClient, waitForRedis } from '#libs/platform/redis/index.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';

let server: TestRedis;
const clients: RedisClient[] = [];
/** Of two workers. */
let slots: HostSlots[];

beforeAll(async () => {
  server = await startTestRedis();
  slots = await Promise.all(
    [1, 2].map(async () => {
      const redis = connectRedis(server.url);
      clients.push(redis);
      await waitForRedis(redis, 60_000);
      return new HostSlots(redis);
    }),
  );
});
afterAll(async () => {
  for (const client of clients) client.close();
  await server?.stop();
});

const { signal } = new AbortController();

describe('requests to one site', () => {
  it('are four at a time, over all workers, three of them of one organization, until one has ended', async () => {
    const site = newId();
    const now = { organizationId: 'a', intervalMs: 0, maxWaitMs: 0, signal };
    const taken = [];
    for (let n = 0; n < 3; n += 1) taken.push(await slots[n % 2]!.take(site, now));
    expect(await slots[0]!.take(site, now)).toBeNull();
    taken.push(await slots[0]!.take(site, { ...now, organizationId: 'b' }));
    expect(taken).not.toContain(null);
    expect(await slots[0]!.take(site, { ...now, organizationId: 'c' })).toBeNull();
    expect(await slots[0]!.take(newId(), now)).not.toBeNull();
    await taken[3]!();
    expect(await slots[0]!.take(site, { ...now, organizationId: 'c' })).not.toBeNull();
  });

  it('start apart, whichever worker they are of', async () => {
    const site = newId();
    const apart = { organizationId: 'a', intervalMs: 60_000, signal };
    expect(await slots[0]!.take(site, { ...apart, maxWaitMs: 0 })).not.toBeNull();
    expect(await slots[1]!.take(site, { ...apart, maxWaitMs: 1_000 })).toBeNull();
  });

  it('wait for their turn', async () => {
    const site = newId();
    const soon = { organizationId: 'a', intervalMs: 200, maxWaitMs: 10_000, signal };
    const all = await Promise.all([0, 1, 0].map((worker) => slots[worker]!.take(site, soon)));
    expect(all).not.toContain(null);
  });

  it('do not start without Redis', async () => {
    await server.stop();
    const attempt = slots[0]!.take(newId(), { organizationId: 'a', intervalMs: 0, maxWaitMs: 0, signal });
    await expect(attempt).rejects.toMatchObject({ code: 'store_unavailable' });
  });
});
