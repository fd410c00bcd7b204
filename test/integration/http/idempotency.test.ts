import { afterAll, beforeAll, expect, test } from 'vitest';
import { commandContext, RedisIdempotencyStore, setPosition } from '#libs/platform/http/index.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { connectRedis, type RedisClient, waitForRedis } from '#libs/platform/redis/index.ts';
import { idempotencyKey } from '#libs/platform/http/idempotency.keys.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';
import { type Edge, startEdge } from './edge.ts';

let edge: Edge;
let store: TestRedis;
let client: RedisClient;
let held: Promise<void> | undefined;
let entered: () => void = () => undefined;

beforeAll(async () => {
  store = await startTestRedis();
  client = connectRedis(store.url);
  await waitForRedis(client, 60_000);
  edge = await startHolding(client);
});
afterAll(async () => {
  await edge.server.close();
  client.close();
  await store.stop();
});

/** With a route whose requests wait for `held`. */
function startHolding(redis: RedisClient): Promise<Edge> {
  return startEdge({ idempotency: new RedisIdempotencyStore(redis) }, (app) => {
    app.post('/held', { config: { scope: 'write' } }, async () => {
      entered();
      await held;
      return { done: true };
    });
  });
}

/** The next request for `/held` waits until `release`; `inside` resolves when it does. */
function hold(): { readonly inside: Promise<void>; release(): void } {
  const { promise, resolve: release } = Promise.withResolvers<void>();
  const { promise: inside, resolve: enter } = Promise.withResolvers<void>();
  held = promise;
  entered = enter;
  return { inside, release };
}

/** When the lease of a key expires, by the clock of Redis. */
async function leaseEnd(key: string): Promise<number> {
  const name = idempotencyKey({ organizationId: 'org-1', principalId: 'user of org-1', key });
  return Number(await store.command('HGET', name, 'lease_until'));
}

function patch(key: string, body: string, headers: Record<string, string> = {}): Promise<Response> {
  return edge.call('/things/one', { method: 'PATCH', body, headers: { 'idempotency-key': key, ...headers } });
}

test('the same request again gets the first answer again, and runs nothing', async () => {
  const first = await patch('again', '{"name":"a","meta_data":{"x":1,"y":2}}');
  const ran = edge.commands.length;
  const second = await patch('again', ' {"meta_data": {"y": 2, "x": 1}, "name": "a"} ');
  expect(first.headers.get('idempotency-replayed')).toBeNull();
  expect(second.headers.get('idempotency-replayed')).toBe('true');
  for (const header of ['content-type', 'etag', 'parley-position']) {
    expect(second.headers.get(header)).toBe(first.headers.get(header));
  }
  expect([second.status, await second.text()]).toEqual([first.status, await first.text()]);
  expect(edge.commands).toHaveLength(ran);
});

test('the same key with another body, path or method is 422', async () => {
  await patch('other', '{"name":"a"}');
  const answers = [
    await patch('other', '{"name":"b"}'),
    await edge.call('/things/two', { method: 'PATCH', body: '{"name":"a"}', headers: { 'idempotency-key': 'other' } }),
    await edge.call('/failures', { method: 'POST', body: '{"how":"bug"}', headers: { 'idempotency-key': 'other' } }),
  ];
  for (const answer of answers) {
    expect(answer.status).toBe(422);
    expect(await answer.json()).toMatchObject({ detail: [{ loc: ['header', 'idempotency-key'] }] });
  }
});

test('keys of different organizations are independent', async () => {
  await patch('shared', '{"name":"a"}');
  const foreign = await patch('shared', '{"name":"b"}', { authorization: edge.keys.second });
  expect(foreign.status).toBe(200);
  expect(foreign.headers.get('idempotency-replayed')).toBeNull();
});

test('while the first request is in flight, the second is 409; then it gets the first answer', async () => {
  const { inside, release } = hold();
  const request = { method: 'POST', headers: { 'idempotency-key': 'flight' } };
  const first = edge.call('/held', request);
  await inside;
  const second = await edge.call('/held', request);
  release();
  expect(second.status).toBe(409);
  expect(['1', '2', '3']).toContain(second.headers.get('retry-after'));
  expect(await (await first).json()).toEqual({ done: true });
  const third = await edge.call('/held', request);
  expect([third.status, third.headers.get('idempotency-replayed')]).toEqual([200, 'true']);
});

test('a long request keeps its key', async () => {
  const { inside, release } = hold();
  const first = edge.call('/held', { method: 'POST', headers: { 'idempotency-key': 'long' } });
  await inside;
  const end = await leaseEnd('long');
  await eventually(async () => (await leaseEnd('long')) > end);
  release();
  expect((await first).status).toBe(200);
});

test('a reply is stored while its events are applied, and sent then', async () => {
  const { promise: applied, resolve } = Promise.withResolvers<void>();
  const config = { scope: 'write', ownField: () => undefined };
  const applying = await startEdge({ idempotency: new RedisIdempotencyStore(client) }, (app) => {
    app.post('/applied', { config }, async (request) => {
      commandContext(request).onAppended?.(applied);
      return { done: true };
    });
  });
  let hasReply = false;
  const request = { method: 'POST', headers: { 'idempotency-key': 'applied' } };
  const reply = applying.call('/applied', request).finally(() => (hasReply = true));
  const name = idempotencyKey({ organizationId: 'org-1', principalId: 'user of org-1', key: 'applied' });
  await eventually(async () => expect(await store.command('HGET', `${name}:reply`, 'status')).toBe('200'));
  await applying.call('/applied', { method: 'POST' });
  expect(hasReply).toBe(false);
  resolve();
  expect(await (await reply).json()).toEqual({ done: true });
  await applying.server.close();
});

test('the reply to a client that disconnected is stored for its retry', async () => {
  const { inside, release } = hold();
  const request = { method: 'POST', headers: { 'idempotency-key': 'disconnected' } };
  const client = new AbortController();
  const first = edge.call('/held', { ...request, signal: client.signal });
  await inside;
  client.abort();
  await expect(first).rejects.toThrow();
  release();
  await eventually(async () => {
    const retry = await edge.call('/held', request);
    expect([retry.status, retry.headers.get('idempotency-replayed')]).toEqual([200, 'true']);
  });
});

test('the key of a process that lost Redis is free again within seconds', async () => {
  const lost = connectRedis(store.url);
  await waitForRedis(lost, 60_000);
  const other = await startHolding(lost);
  const { inside, release } = hold();
  const request = { method: 'POST', headers: { 'idempotency-key': 'lost', authorization: edge.keys.first } };
  const principal = { ...request, headers: { ...request.headers, authorization: other.keys.first } };
  const first = other.call('/held', principal);
  await inside;
  lost.close();
  const tooEarly = await edge.call('/held', request);
  expect(tooEarly.status).toBe(409);
  expect(['1', '2', '3']).toContain(tooEarly.headers.get('retry-after'));
  release();
  expect((await first).status).toBe(200);
  await eventually(async () => expect((await edge.call('/held', request)).status).toBe(200));
  await other.server.close();
});

test('a request whose key Redis does not confirm runs as one that may be repeated, and its reply is stored later', async () => {
  await store.pause();
  const late = await patch('late', '{"name":"a"}');
  await store.resume();
  expect(late.status).toBe(200);
  await eventually(async () => {
    const again = await patch('late', '{"name":"a"}');
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([200, 'true']);
  });
});

test.each(['fault', 'bug', 'conflict', 'missing'])(
  'a temporary answer (%s) is not stored: the command runs again, as the same command',
  async (how) => {
    const request = { method: 'POST', body: JSON.stringify({ how }), headers: { 'idempotency-key': `retry-${how}` } };
    const before = edge.commands.length;
    const first = await edge.call('/failures', request);
    const second = await edge.call('/failures', request);
    expect(second.status).toBe(first.status);
    expect(second.headers.get('idempotency-replayed')).toBeNull();
    const [one, two] = edge.commands.slice(before);
    expect(one).toBeDefined();
    expect(two).toBe(one);
  },
);

test('a rejection that was decided on the log is stored', async () => {
  const request = { method: 'POST', body: '{"how":"rejected"}', headers: { 'idempotency-key': 'rejected' } };
  await edge.call('/failures', request);
  const second = await edge.call('/failures', request);
  expect([second.status, second.headers.get('idempotency-replayed')]).toEqual([404, 'true']);
});

test('invalid input does not use up the key', async () => {
  expect((await patch('fresh', '{"name":1}')).status).toBe(422);
  expect((await patch('fresh', '{"name":"a"}')).status).toBe(200);
});

test('without a key, every request is a command of its own', async () => {
  const before = edge.commands.length;
  for (let request = 0; request < 2; request += 1) await edge.call('/things/one', { method: 'PATCH', body: '{}' });
  expect(new Set(edge.commands.slice(before)).size).toBe(2);
});

test('a key has 1 to 255 visible characters', async () => {
  expect((await patch('k'.repeat(255), '{}')).status).toBe(200);
  for (const key of ['k'.repeat(256), '', 'a b']) expect((await patch(key, '{}')).status).toBe(422);
});

test('a request with a key is 503 where no store remembers keys, and nothing runs', async () => {
  const without = await startEdge();
  const answer = await without.call('/things/one', {
    method: 'PATCH',
    body: '{}',
    headers: { 'idempotency-key': 'a' },
  });
  await without.server.close();
  expect(answer.status).toBe(503);
  expect(without.commands).toEqual([]);
});

test('without room for its reply, a repeated request runs again as the same command, and knows where its events are', async () => {
  const contexts: CommandContext[] = [];
  let stored = 0;
  const idempotency = new RedisIdempotencyStore(client, {
    maxReplyBytes: 2_000,
    onStored: (bytes) => void (stored = bytes),
  });
  const small = await startEdge({ idempotency }, (app) => {
    app.post<{ Params: { size: string } }>('/written/:size', { config: { scope: 'write' } }, async (request, reply) => {
      contexts.push(commandContext(request));
      setPosition(request, reply, { stream: 'thing-one', revision: 4 });
      return { text: 'x'.repeat(Number(request.params.size)) };
    });
    app.post('/secrets', { config: { scope: 'write' } }, async (request) => {
      if (request.idempotentRun !== null)
        request.idempotentRun.storedBody = JSON.stringify({ without: 'x'.repeat(1_900) });
      return { secret: 'a' };
    });
  });
  const post = async (size: number, key: string) => {
    const request = { method: 'POST', body: '{}', headers: { 'idempotency-key': key } };
    return (await small.call(`/written/${size}`, request)).headers.get('idempotency-replayed');
  };
  expect([await post(10, 'room'), await post(10, 'room')]).toEqual([null, 'true']);
  expect(stored).toBeGreaterThan(300);
  expect([await post(1_900, 'no-room'), await post(1_900, 'no-room')]).toEqual([null, null]);
  const [, first, second] = contexts;
  expect(contexts).toHaveLength(3);
  expect(second?.commandId).toBe(first?.commandId);
  expect(first).toMatchObject({ repeatedSinceMs: undefined, repeatedPosition: undefined });
  expect(second?.repeatedSinceMs).toBeLessThanOrEqual(Date.now() + 60_000);
  expect(second?.repeatedPosition).toEqual({ stream: 'thing-one', revision: 4 });
  // Its fingerprint is still known.
  const other = { method: 'POST', body: '{"a":1}', headers: { 'idempotency-key': 'no-room' } };
  expect((await small.call('/written/1900', other)).status).toBe(422);
  // A new secret would be another effect.
  const secret = { method: 'POST', body: '{}', headers: { 'idempotency-key': 'secret' } };
  expect((await small.call('/secrets', secret)).headers.get('idempotency-replayed')).toBeNull();
  expect((await small.call('/secrets', secret)).headers.get('idempotency-replayed')).toBe('true');
  await small.server.close();
});
