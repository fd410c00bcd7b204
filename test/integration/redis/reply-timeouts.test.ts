import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';

import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { RedisClient } from '#libs/platform/redis/redis-client.ts';
import { connectRedis, waitForRedis } from '#libs/platform/redis/redis.ts';
import { nodeWith } from '#test/support/redis-commands.ts';
import { type EmptyRedis, startEmptyRedis } from '#test/support/redis.ts';

/** In front of Redis: while it drips, replies come byte by byte, so that the server is not silent. */
async function startDrip(target: URL) {
  let held: Buffer[] | null = null;
  let deliver: (bytes: Buffer) => void = () => undefined;
  const server: Server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    deliver = (bytes) => client.write(bytes);
    client.on('data', (bytes) => upstream.write(bytes)).on('close', () => upstream.destroy());
    upstream.on('data', (bytes) => (held === null ? client.write(bytes) : held.push(bytes)));
    for (const socket of [client, upstream]) socket.on('error', () => undefined);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const dripping = setInterval(() => {
    const all = Buffer.concat(held ?? []);
    if (all.length < 2) return;
    deliver(all.subarray(0, 1));
    held = [all.subarray(1)];
  }, 100);
  return {
    url: Object.assign(new URL(target), { port: String((server.address() as AddressInfo).port) }).href,
    drip: () => (held = []),
    flow() {
      deliver(Buffer.concat(held ?? []));
      held = null;
    },
    stop() {
      clearInterval(dripping);
      server.close();
    },
  };
}

// Its proxy stands in front of a single server.
describe.skipIf(process.env['PARLEY_TEST_REDIS'] === 'cluster')('the time limit of Redis commands', () => {
  let server: EmptyRedis;
  let drip: Awaited<ReturnType<typeof startDrip>>;
  let redis: RedisClient;
  let node: Redis;

  beforeAll(async () => {
    server = await startEmptyRedis();
    drip = await startDrip(new URL(server.url));
    redis = connectRedis(drip.url);
    await waitForRedis(redis, 10_000);
    node = nodeWith(redis, 'any');
  });

  afterAll(async () => {
    redis.close();
    drip.stop();
    await server.stop();
  });

  it('needs no timer for each command', async () => {
    const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    const replies = Array.from({ length: 50 }, (_, index) => redis.values([`key ${index}`]));
    expect(timers()).toBeLessThan(before + 10);
    await Promise.all(replies);
  });

  it('fails the commands whose replies do not come, and later ones get their own replies', async () => {
    await node.set('large', 'x'.repeat(1_000));
    await node.set('small', 'of the later command');
    const { stream } = node;
    drip.drip();
    const late = [redis.values(['large']), redis.values(['b'])];
    const called = redis.call([{ name: 'none', keys: ['a'], args: [] }]);
    const timedOut = expect.objectContaining({ code: 'store_unavailable', cause: new Error('Command timed out') });
    for (const reply of late) await expect(reply).rejects.toEqual(timedOut);
    expect(await called).toEqual([{ ok: false, error: timedOut }]);
    drip.flow();
    expect((await redis.values(['small']))[0]?.toString()).toBe('of the later command');
    expect(node.stream).toBe(stream);
  });
});
