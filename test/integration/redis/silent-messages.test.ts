/** Redis answers commands and delivers no messages: a subscription notices that it receives none. */
import { createServer, connect, type AddressInfo } from 'node:net';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import {
  connectRedis,
  missingRight,
  subscribeToRedis,
  waitForRedis,
  type RedisClient,
} from '#libs/platform/redis/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';

let redis: TestRedis;
const cleanUps: (() => unknown)[] = [];

beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(async () => {
  for (const cleanUp of cleanUps.toReversed()) await cleanUp();
  await redis.stop();
});

async function connected(url: string): Promise<RedisClient> {
  const client = connectRedis(url);
  cleanUps.push(() => client.close());
  await waitForRedis(client, 60_000);
  return client;
}

function subscribed(client: RedisClient, channel: string) {
  const texts: string[] = [];
  const subscription = subscribeToRedis(client, channel, {
    onMessage: (text) => texts.push(text),
    onListening: () => undefined,
  });
  cleanUps.push(() => subscription.stop());
  /** The messages of the last second may be missing. */
  const isBehind = (): boolean => performance.now() - (subscription.received?.until ?? -Infinity) > 1_000;
  return { texts, isBehind };
}

/** To the Redis, on any port; swallows what is published while `isSwallowing`. */
async function startSwallowingProxy(url: URL) {
  const state = { isSwallowing: false, url: '' };
  const server = createServer((client) => {
    const upstream = connect(Number(url.port), url.hostname);
    client.pipe(upstream);
    upstream.on('data', (data) => {
      if (!(state.isSwallowing && data.includes('\r\nmessage\r\n'))) client.write(data);
    });
    for (const socket of [client, upstream]) {
      socket.on('error', () => undefined);
      socket.on('close', () => [client, upstream].forEach((one) => one.destroy()));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUps.push(() => server.close());
  const own = new URL(url);
  // Here, while a container may have an address of its own.
  own.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  state.url = own.href;
  return state;
}

describe.skipIf(process.env['PARLEY_TEST_REDIS'] === 'cluster')('a subscription', () => {
  it('notices that a proxy swallows messages and answers pings, and receives again afterwards', async () => {
    const proxy = await startSwallowingProxy(new URL(redis.url));
    const { texts, isBehind } = subscribed(await connected(proxy.url), 'parley:news');
    await eventually(() => !isBehind());
    await redis.command('PUBLISH', 'parley:news', 'first');
    await eventually(() => expect(texts).toEqual(['first']));
    proxy.isSwallowing = true;
    await eventually(isBehind);
    proxy.isSwallowing = false;
    await eventually(() => !isBehind());
    await redis.command('PUBLISH', 'parley:news', 'second');
    await eventually(() => expect(texts).toEqual(['first', 'second']));
  });

  it.each([
    { takes: '-publish', gives: '+publish' },
    { takes: 'resetchannels', gives: '&parley:*' },
  ])('notices that its user lost a right ($takes), which readiness names', async ({ takes, gives }) => {
    await redis.command('ACL', 'SETUSER', 'few', 'reset', 'on', '>secret', '~parley:*', '&parley:*', '+@all');
    const url = new URL(redis.url);
    Object.assign(url, { username: 'few', password: 'secret' });
    const client = await connected(url.href);
    const { isBehind } = subscribed(client, 'parley:news');
    await eventually(() => !isBehind());
    await redis.command('ACL', 'SETUSER', 'few', takes);
    await eventually(isBehind);
    expect(await missingRight(client.nodes()[0]!)).toMatch(/^NOPERM/);
    await redis.command('ACL', 'SETUSER', 'few', gives);
    await eventually(() => !isBehind());
  });
});
