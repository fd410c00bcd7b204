import { CHANNEL_PROJECTION_KEYS } from '#test/support/projection-keys.ts';
import { CHANNEL_READ_MODEL } from '#libs/features/channels/index.ts';
import { Tickets } from '#libs/features/realtime/index.ts';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import calculateSlot from 'cluster-key-slot';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { freePort } from '#infra/private-redis/free-port.ts';
import { startRedisProcess } from '#infra/private-redis/redis-process.ts';
import { RedisIdempotencyStore } from '#libs/platform/http/index.ts';
import { idempotencyKey } from '#libs/platform/http/idempotency.keys.ts';
import { connectRedis, type RedisClient, TopicSubscriptions, waitForRedis } from '#libs/platform/redis/index.ts';
import { FunctionLibrary } from '#libs/platform/redis/function-library.ts';
import { CategoryReader } from '#libs/platform/readmodel/category-reader.ts';
import { ReadModel } from '#libs/platform/readmodel/index.ts';
import { READ_MODEL_FUNCTIONS } from '#libs/platform/readmodel/read-model.ts';
import { NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';
import { eventually } from '#test/support/eventually.ts';
import { startParleyProcess } from '#test/support/parley-process.ts';
import { startTestRedisCluster, type TestRedisCluster, type TestRedisNode } from '#test/support/redis-cluster.ts';

let cluster: TestRedisCluster;
let redis: RedisClient;

beforeAll(async () => {
  cluster = await startTestRedisCluster();
  redis = connectRedis(cluster.url);
  await waitForRedis(redis, 30_000);
}, 120_000);
afterAll(async () => {
  redis.close();
  await cluster.stop();
});

/** A key on that node, different from earlier ones. */
let made = 0;
function keyOn(node: TestRedisNode): string {
  for (;;) {
    const key = `test:{${++made}}`;
    if (cluster.masterOf(key) === node) return key;
  }
}
const set = (key: string, value: string): Promise<unknown> => redis.send(key, (node) => node.set(key, value));
const texts = async (keys: readonly string[]): Promise<(string | undefined)[]> =>
  (await redis.values(keys)).map((value) => (value instanceof Error ? value.name : value?.toString()));

describe('a Redis Cluster', () => {
  it('is read, scanned and emptied over all of its nodes', async () => {
    const keys = cluster.masters.flatMap((node) => [keyOn(node), keyOn(node)]);
    await Promise.all(keys.map((key, n) => set(key, `${n}`)));
    expect(await texts([...keys, 'test:none'])).toEqual(['0', '1', '2', '3', '4', '5', undefined]);
    const found: string[] = [];
    for await (const some of redis.scan('test:{*', 2)) found.push(...some);
    expect(found.sort()).toEqual([...keys].sort());
    expect(await redis.remove([...keys, 'test:none'])).toBe(6);
    expect((await redis.ping()).map(({ answers }) => answers)).toEqual([true, true, true]);
  });

  it('runs functions on the node of each call, and answers in the order of the calls', async () => {
    const keys = [...cluster.masters, ...cluster.masters].map((node) => `${keyOn(node)}:revision`);
    const readModel = new ReadModel(redis);
    const [first, last] = [streamRevision(0), streamRevision(0)];
    const writes = keys.map((revisionKey) => ({ revisionKey, first, last, operations: [], lists: [] }));
    expect((await readModel.apply(writes)).map(({ kind }) => kind)).toEqual(Array(6).fill('applied'));
    expect(await readModel.revisions([...keys, 'test:{none}'])).toEqual([0, 0, 0, 0, 0, 0, NO_EVENTS]);
    await redis.remove(keys);
  });

  it('takes an idempotency key although the node of the field that it looks up has lost its functions', async () => {
    const store = new RedisIdempotencyStore(redis);
    const [ofKey, ofField] = cluster.masters;
    const keys = Array.from({ length: 100 }, (_, n) => ({ organizationId: 'o', principalId: 'p', key: `${n}` }));
    const [first, second] = keys.filter((scope) => cluster.masterOf(idempotencyKey(scope)) === ofKey);
    const entity = keyOn(ofField);
    const field = { revisionKey: `${entity}:revision`, key: `${entity}:spans`, field: 'span' };
    expect(await store.begin(first!, 'request', field)).toMatchObject({ state: 'started', absentAt: NO_EVENTS });
    await ofField.command('FUNCTION', 'FLUSH');
    expect(await store.begin(second!, 'request', field)).toMatchObject({ state: 'started', absentAt: NO_EVENTS });
  });

  it('takes each ticket once, whatever node it is on', async () => {
    const tickets = new Tickets({ redis });
    const grant = {
      organizationId: 'o',
      channelId: 'c',
      principalType: 'service',
      principalId: 's',
      keyId: 'k',
    } as const;
    const whole = { ...grant, scopes: ['read'], isMember: false, takesPart: false, expiresAtMs: null };
    const issued = await Promise.all(Array.from({ length: 20 }, () => tickets.issue(whole)));
    const taken = await Promise.all([...issued, ...issued].map(({ value }) => tickets.redeem(value)));
    expect(taken).toEqual([...issued.map(() => whole), ...issued.map(() => null)]);
  });

  it('receives a topic where it is published, and follows it to another node', async () => {
    const [from, to] = cluster.masters;
    const topic = keyOn(from);
    const key = `${topic}:key`;
    await set(key, 'before');
    const calls: string[] = [];
    const topics = new TopicSubscriptions(redis);
    topics.subscribe(topic, {
      onMessage: (message) => calls.push(message.toString()),
      onListening: () => calls.push('(listening)'),
      onInterrupted: () => calls.push('(interrupted)'),
    });
    const tell = (text: string) => redis.send(topic, (node) => node.spublish(topic, text));
    await eventually(() => calls.length === 1);
    await tell('first');
    await eventually(() => calls.includes('first'));

    await cluster.moveSlot(calculateSlot(topic), from, to);
    expect(await texts([key])).toEqual(['before']);
    await set(key, 'after');
    expect(await to.command('GET', key)).toBe('after');
    await eventually(() => calls.at(-1) === '(listening)' && calls.includes('(interrupted)'));
    await tell('second');
    await eventually(() => calls.includes('second'));
    expect(calls.filter((text) => !text.startsWith('('))).toEqual(['first', 'second']);
    topics.close();
    await cluster.moveSlot(calculateSlot(topic), to, from);
    await eventually(async () => (await texts([key]))[0] === 'after');
    await redis.remove([key]);
  });

  it('shows read models as complete only if they were before the value was read', async () => {
    const reader = new CategoryReader(redis, CHANNEL_READ_MODEL);
    const key = 'test:{value}';
    const read = async () => {
      const { value, isComplete } = await reader.value(key);
      return { value: value?.toString(), isComplete };
    };
    expect(await read()).toEqual({ value: undefined, isComplete: false });
    await set(CHANNEL_PROJECTION_KEYS.build, 'one');
    await set(CHANNEL_PROJECTION_KEYS.complete, '1');
    await set(key, 'value');
    expect(await read()).toEqual({ value: 'value', isComplete: true });
    // Another build is completed between the read of the value and the second read of the mark.
    const values = redis.values.bind(redis);
    redis.values = async (keys) => {
      const found = await values(keys);
      if (keys.includes(key)) await set(CHANNEL_PROJECTION_KEYS.build, `of ${keys.length} at ${++made}`);
      return found;
    };
    expect((await read()).isComplete).toBe(false);
    redis.values = values;
    await redis.remove([...Object.values(CHANNEL_PROJECTION_KEYS), key]);
  });

  it('misses only keys of a node that is down, until it is back', async () => {
    const [, away, there] = cluster.masters;
    const [lost, kept] = [keyOn(away), keyOn(there)];
    await set(lost, 'lost');
    await set(kept, 'kept');
    const library = new FunctionLibrary(redis, READ_MODEL_FUNCTIONS);
    const lookUp = (key: string) => library.callAll([{ name: 'parley_lookup_v8', keys: [key], args: [] }]);
    await lookUp(kept);
    await away.kill9();
    await eventually(async () => expect(await texts([lost, kept])).toEqual(['Fault', 'kept']));
    await expect(lookUp(lost)).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(await lookUp(kept)).toEqual([['kept']]);
    await expect(set(lost, 'x')).rejects.toMatchObject({ code: 'store_unavailable' });
    expect((await redis.ping()).filter(({ answers }) => !answers)).toHaveLength(1);
    await away.restart();
    await eventually(async () => expect(await texts([lost, kept])).toEqual(['lost', 'kept']));
  });
});

describe('an address of Redis', () => {
  /**
   * Connects with addresses as `REDIS_URL` has them.
   * @returns why they are wrong, or 'ready'
   */
  async function verdictOn(...addresses: readonly string[]): Promise<string> {
    let why = '';
    const client = connectRedis(addresses.join(','), { onMisfit: (reason) => (why = reason) });
    try {
      return await eventually(
        async () => {
          if (why === '') await waitForRedis(client, 1_000);
          // The first reply follows the replies to the connection's own commands; the second follows the handling of
          // those.
          if (why === '') await client.ping();
          if (why === '') await client.ping();
          return why || 'ready';
        },
        { timeoutMs: 30_000 },
      );
    } finally {
      client.close();
    }
  }

  it('alone is one server, and of several each is a node of a cluster; a wrong one is reported', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'parley-test-one-redis-'));
    const server = await startRedisProcess({ dataDir, port: await freePort() });
    const [node = ''] = cluster.url.split(',');
    try {
      expect(await verdictOn(server.url)).toBe('ready');
      expect(await verdictOn(node, node)).toBe('ready');
      expect(await verdictOn(node)).toMatch(/^one address is a single server, and this one is a node of a Redis Clu/);
      expect(await verdictOn(server.url, server.url)).toMatch(/^several addresses are nodes of a Redis Cluster, and /);
    } finally {
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    }
  }, 240_000);

  it('of the wrong kind ends a process, with a line that names the mistake', async () => {
    const [redisUrl = ''] = cluster.url.split(',');
    const parley = await startParleyProcess({ redisUrl, wait: false });
    try {
      expect(await parley.ended()).toBe(1);
      expect(parley.output()).toMatch(
        /^parley: REDIS_URL: one address is a single server, and this one is a node of /m,
      );
    } finally {
      await parley.stop();
    }
    // Ends a hang: on a busy machine, a process takes a minute to start.
  }, 240_000);
});
