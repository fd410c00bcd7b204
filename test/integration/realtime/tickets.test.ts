import { createHash } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { TICKET_TTL_MS, Tickets } from '#libs/features/realtime/index.ts';
import { connectRedis, type RedisClient, waitForRedis } from '#libs/platform/redis/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';
import type { TestRedis } from '#test/support/redis.ts';
import { keysIn, nodeWith } from '#test/support/redis-commands.ts';
import type { ChannelGrant } from '#libs/platform/live/index.ts';

let api: TestApi<TestRedis>;
let channelId: string;

beforeAll(async () => {
  api = await startTestApi({ redis: 'own' });
  channelId = (await call('POST', '/api/v1/channels', { name: 'A channel' })).json.id;
});
afterAll(() => api.stop());

function call(method: Call['method'], url: string, body?: object, key = api.rootKey): Promise<Answer> {
  return api.call({ method, url, key, ...(body && { body }) });
}
const ticketOf = (id: string, key?: string, name = 'websocket_ticket'): Promise<Answer> =>
  call('POST', `/api/v1/channels/${id}/${name}`, undefined, key);

async function newKey(scopes: readonly string[], principal?: object): Promise<string> {
  return (
    await call('POST', '/api/v1/keys', {
      name: 'a key',
      scopes,
      access: 'organization',
      ...(principal && { principal }),
    })
  ).json.key;
}

/** The Redis key of a ticket. */
const redisKeyOf = (value: string): string =>
  `parley:ticket:{${createHash('sha256').update(value).digest('base64url')}}`;

const grant: ChannelGrant = {
  organizationId: 'o',
  channelId: 'c',
  principalType: 'service',
  principalId: 's',
  keyId: 'k',
  scopes: ['read'],
  isMember: false,
  takesPart: false,
  expiresAtMs: null,
};

/** The client, whose first `call` is answered when `released` resolves. */
function holdingFirst(redis: RedisClient, released: Promise<void>, onCall: () => number): RedisClient {
  const call: RedisClient['call'] = async (...args) => {
    const isFirst = onCall() === 1;
    const replies = await redis.call(...args);
    if (isFirst) await released;
    return replies;
  };
  return new Proxy(redis, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (name === 'call') return call;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

describe('a ticket for a websocket', () => {
  it.each(['websocket_ticket', 'websocket_tickets'])('is made by POST …/%s', async (name) => {
    const before = Date.now();
    const answer = await ticketOf(channelId, api.rootKey, name);
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(answer.headers['cache-control']).toBe('no-store');
    expect(Object.keys(answer.json)).toEqual(['value', 'expires_at', 'channel_id']);
    expect(answer.json.value).toMatch(/^parley_ticket_[A-Za-z0-9_-]{43}$/);
    expect(answer.json.expires_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(Date.parse(answer.json.expires_at)).toBeGreaterThanOrEqual(before + TICKET_TTL_MS);
    expect(Date.parse(answer.json.expires_at)).toBeLessThanOrEqual(Date.now() + TICKET_TTL_MS);
    expect(answer.json.channel_id).toBe(channelId);
  });

  it('is never the same twice, whatever Idempotency-Key is sent', async () => {
    const url = `/api/v1/channels/${channelId}/websocket_ticket`;
    const headers = { 'idempotency-key': 'again and again'.replaceAll(' ', '-') };
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => api.call({ method: 'POST', url, key: api.rootKey, headers })),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(new Set(answers.map(({ json }) => json.value)).size).toBe(answers.length);
    const { redis } = api.stores.platform;
    expect(await keysIn(redis, 'parley:idempotency:*')).toEqual([]);
  });

  it("is stored hashed, for a minute by Redis' own clock", async () => {
    const { value, expires_at: expiresAt } = (await ticketOf(channelId)).json;
    const { redis } = api.stores.platform;
    const key = redisKeyOf(value);
    expect(await nodeWith(redis, key).pexpiretime(key)).toBe(Date.parse(expiresAt));
    for (const name of await keysIn(redis, '*')) {
      expect(name).not.toContain(value);
      expect(name).not.toContain(value.slice('parley_ticket_'.length));
    }
    const stored = await nodeWith(redis, key).get(key);
    expect(stored).not.toContain(value.slice('parley_ticket_'.length));
    expect(JSON.parse(stored ?? '')).toEqual({
      organizationId: api.organizationId,
      channelId,
      principalType: 'user',
      principalId: api.userId,
      keyId: expect.stringMatching(/^[0-9a-f]{32}$/),
      scopes: expect.arrayContaining(['read', 'write']),
      isMember: false,
      takesPart: true,
      expiresAtMs: null,
    });
  });

  it('is redeemed once by concurrent callers in two processes', async () => {
    const other = connectRedis(api.stores.redis.url);
    await waitForRedis(other, 60_000);
    const processes = [new Tickets(api.stores.platform), new Tickets({ redis: other })] as const;
    const { value } = (await ticketOf(channelId)).json;
    const redeemed = await Promise.all(Array.from({ length: 50 }, (_, n) => processes[n % 2]?.redeem(value)));
    const grants = redeemed.filter((grant) => grant !== null);
    expect(grants).toMatchObject([{ organizationId: api.organizationId, channelId, principalId: api.userId }]);
    expect(await processes[0].redeem(value)).toBeNull();
    other.close();
  });

  it('is redeemed for exactly the grant that it was issued for', async () => {
    const tickets = new Tickets(api.stores.platform);
    const { value } = await tickets.issue(grant);
    expect(await tickets.redeem(value)).toEqual(grant);
  });

  it('is redeemed after those in flight, whatever becomes of the others that wait with it', async () => {
    const { redis } = api.stores.platform;
    const released = Promise.withResolvers<void>();
    let sent = 0;
    const tickets = new Tickets({ redis: holdingFirst(redis, released.promise, () => (sent += 1)) });
    const values: string[] = [];
    for (const channelId of ['a', 'b', 'c', 'd', 'e']) {
      // In a cluster, only those at the same node wait for each other.
      let value: string;
      do {
        ({ value } = await new Tickets(api.stores.platform).issue({ ...grant, channelId }));
      } while (redis.nodeOf(redisKeyOf(value)) !== redis.nodeOf(redisKeyOf(values[0] ?? value)));
      values.push(value);
    }
    const [first = '', second = '', damaged = '', third = '', last = ''] = values;
    const held = tickets.redeem(first);
    await eventually(() => sent === 1);
    const key = redisKeyOf(damaged);
    await nodeWith(redis, key).multi().del(key).rpush(key, 'no string').exec();
    const waiting = [second, damaged, third, first, second].map((value) => tickets.redeem(value));
    const settled = Promise.allSettled(waiting);
    await nodeWith(redis, key).ping();
    expect(sent).toBe(1);
    released.resolve();
    expect(await held).toMatchObject({ channelId: 'a' });
    expect(await settled).toMatchObject([
      { value: { channelId: 'b' } },
      { value: null },
      { value: { channelId: 'd' } },
      { value: null },
      { value: null },
    ]);
    expect(await tickets.redeem(last)).toMatchObject({ channelId: 'e' });
  });

  it('is refused when it is expired, changed, or unknown', async () => {
    const tickets = new Tickets(api.stores.platform);
    const { value } = (await ticketOf(channelId)).json;
    const last = value.at(-1) === 'A' ? 'B' : 'A';
    const madeUp = [`${value.slice(0, -1)}${last}`, value.slice(0, -1), `${value}A`, value.toUpperCase(), '', '*'];
    for (const other of madeUp) expect(await tickets.redeem(other)).toBeNull();
    const redis = nodeWith(api.stores.platform.redis, redisKeyOf(value));
    await redis.pexpire(redisKeyOf(value), 1);
    await eventually(async () => (await redis.exists(redisKeyOf(value))) === 0);
    expect(await tickets.redeem(value)).toBeNull();
  });
});

describe('the issue of a ticket', () => {
  it('is refused for an unknown channel, or one of another organization', async () => {
    const organization = (await call('POST', '/api/v1/organizations', { name: 'Others' })).json;
    const service = { type: 'service', id: 'others' };
    const body = { name: 'k', scopes: ['read'], principal: service, organization_id: organization.id };
    const foreign = (await call('POST', '/api/v1/keys', body)).json.key;
    const missing = await ticketOf('0198c0de-0000-7000-8000-000000000000');
    const others = await ticketOf(channelId, foreign);
    expect([missing.status, others.status]).toEqual([404, 404]);
    expect(others.bytes).toBe(missing.bytes);
    expect((await ticketOf('no..id')).status).toBe(404);
  });

  it('is open to every key that may read the channel, and records whether a user takes part', async () => {
    const tickets = new Tickets(api.stores.platform);
    const user = (await call('POST', '/api/v1/users', { display_name: 'Ada' })).json;
    const ada = await newKey(['read'], { type: 'user', id: user.id });
    const before = await ticketOf(channelId, ada);
    expect(await tickets.redeem(before.json.value)).toMatchObject({ principalId: user.id, takesPart: false });
    const participant = { type: 'authenticated_user', user_id: user.id };
    const added = await call('POST', `/api/v1/channels/${channelId}/participants`, participant);
    expect(added.status).toBe(200);
    const after = await ticketOf(channelId, ada);
    expect(await tickets.redeem(after.json.value)).toMatchObject({ principalId: user.id, takesPart: true });
    const service = await newKey(['read'], { type: 'service', id: 'robot' });
    const { value } = (await ticketOf(channelId, service)).json;
    expect(await tickets.redeem(value)).toMatchObject({ principalId: 'robot', takesPart: false });
  });

  it('needs the scope read', async () => {
    const writer = await newKey(['write']);
    const answer = await ticketOf(channelId, writer);
    expect([answer.status, answer.json.code]).toEqual([403, 'missing_scope']);
    const nobody = await api.call({ method: 'POST', url: `/api/v1/channels/${channelId}/websocket_ticket` });
    expect(nobody.status).toBe(401);
  });

  it('is refused with a time to retry while Redis is unavailable', async () => {
    await api.stores.redis.kill9();
    const answer = await eventually(async () => {
      const found = await ticketOf(channelId);
      return found.status === 503 && found;
    });
    expect(answer && answer.headers['retry-after']).toBe('2');
    expect(answer && answer.json.code).toBe('store_unavailable');
    await expect(new Tickets(api.stores.platform).redeem(`parley_ticket_${'A'.repeat(43)}`)).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    await api.stores.redis.restart();
    await eventually(async () => (await ticketOf(channelId)).status === 200);
  });
});
