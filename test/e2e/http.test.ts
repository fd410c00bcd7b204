/* The conventions of the API over HTTP: mistakes and attacks of callers, and their answers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApiKey } from '#libs/platform/http/index.ts';
import type { ApiClient, Reply } from '#test/support/api-client.ts';
import { answerOf } from '#test/support/channel-load.ts';
import { startTestEventStore, type TestEventStore } from '#test/support/event-store.ts';
import { readLog } from '#test/support/log-reader.ts';
import { startParleyHere, type ParleyHere } from '#test/support/parley-here.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';
import { newKey, newTenant, type Tenant } from '#test/support/tenants.ts';

let eventStore: TestEventStore;
let redis: TestRedis;
let parley: ParleyHere;
let root: ApiClient;
let tenant: Tenant;
let foreign: Tenant;
let api: ApiClient;
let channelId: string;
let foreignId: string;

const MISSING = '01900000-0000-7000-8000-000000000000';

beforeAll(async () => {
  [eventStore, redis] = await Promise.all([startTestEventStore(), startTestRedis()]);
  parley = await startParleyHere({ EVENTSTORE_URL: eventStore.url, REDIS_URL: redis.url });
  root = parley.api;
  [tenant, foreign] = [await newTenant(root), await newTenant(root)];
  api = tenant.api;
  channelId = await newChannel(api);
  foreignId = await newChannel(foreign.api);
});

afterAll(async () => {
  api?.close();
  foreign?.api.close();
  await parley?.stop();
  await Promise.all([eventStore?.stop(), redis?.stop()]);
});

async function newChannel(client: ApiClient): Promise<string> {
  return answerOf(await client.post('/api/v1/channels', { name: 'A channel', participants: [] })).channelId;
}

const eventCount = async (): Promise<number> => (await readLog(eventStore.url, 'channel-')).length;

/** Everything in an answer except what names the request. */
function visible({ status, text, headers }: Reply): object {
  const { 'x-request-id': _id, traceparent: _trace, date: _date, ...others } = headers;
  return { status, text, others };
}

describe('authentication', () => {
  it('accepts a key bare, as Bearer and as Token, in any case of the scheme', async () => {
    const key = parley.apiKey;
    for (const authorization of [key, `Bearer ${key}`, `Token ${key}`, `bearer ${key}`, `TOKEN  ${key}`]) {
      expect((await root.get('/api/v1/channels', { headers: { authorization } })).status).toBe(200);
    }
  });

  it('refuses everything else alike, with 401 and how to authenticate', async () => {
    const wrong = [undefined, '', 'Bearer', 'Bearer ', 'Bearer junk', `Basic ${parley.apiKey}`, createApiKey()];
    for (const authorization of [...wrong, `${parley.apiKey}x`, `Bearer ${parley.apiKey} x`, 'x'.repeat(4_000)]) {
      const reply = await root.get(`/api/v1/channels/${channelId}`, { headers: { authorization } });
      expect(reply.status).toBe(401);
      expect(reply.json()).toMatchObject({ detail: 'Not authenticated' });
      expect(reply.headers['www-authenticate']).toMatch(/^Bearer/);
    }
  });

  it('answers 403 to a known caller whose key lacks the scope', async () => {
    const reader = root.withKey(await newKey(root, ['read']));
    expect((await reader.get('/api/v1/channels')).status).toBe(200);
    const refused = [
      await reader.post('/api/v1/channels', { name: 'x' }),
      await reader.patch(`/api/v1/channels/${channelId}`, { name: 'x' }),
      await reader.post(`/api/v1/channels/${channelId}/archive`),
      await reader.get('/api/v1/keys'),
    ];
    for (const reply of refused) {
      expect(reply.status).toBe(403);
      expect(reply.json()).toMatchObject({ detail: expect.stringContaining('scope') });
    }
    reader.close();
  });
});

describe('the error table', () => {
  it('answers for another organization’s channel byte for byte as for a missing one, and changes nothing', async () => {
    const before = await eventCount();
    const calls: { method: string; path: (id: string) => string; body?: object }[] = [
      { method: 'GET', path: (id) => `/api/v1/channels/${id}` },
      { method: 'HEAD', path: (id) => `/api/v1/channels/${id}` },
      { method: 'GET', path: (id) => `/api/v1/channels/${id}/participants` },
      { method: 'PATCH', path: (id) => `/api/v1/channels/${id}`, body: { name: 'mine now' } },
      { method: 'PATCH', path: (id) => `/api/v1/channels/${id}`, body: {} },
      { method: 'POST', path: (id) => `/api/v1/channels/${id}/participants`, body: { type: 'external_agent' } },
      { method: 'DELETE', path: (id) => `/api/v1/channels/${id}/participants/${MISSING}` },
      { method: 'POST', path: (id) => `/api/v1/channels/${id}/archive` },
    ];
    for (const { method, path, body } of calls) {
      for (const headers of [{}, { 'if-match': '"0"' }, { 'if-match': '"9"' }, { 'if-none-match': '"0"' }]) {
        const theirs = await api.request(method, path(foreignId), { body, headers });
        expect(theirs.status).toBe(404);
        expect(visible(theirs)).toEqual(visible(await api.request(method, path(MISSING), { body, headers })));
      }
    }
    expect(await eventCount()).toBe(before);
  });

  it.each([
    ['PUT', '/api/v1/channels', ['GET', 'POST']],
    ['DELETE', '/api/v1/channels/x', ['GET', 'PATCH']],
    ['PATCH', '/api/v1/channels/x/archive', ['POST']],
    ['PROPFIND', '/api/v1/channels/x', ['GET', 'PATCH']],
  ])('%s %s is 405 with the allowed methods', async (method, path, allowed) => {
    const reply = await api.request(method, path);
    expect(reply.status).toBe(405);
    expect(reply.headers.allow?.split(', ')).toEqual(expect.arrayContaining(allowed));
    expect(reply.json()).toMatchObject({ detail: expect.any(String) });
  });

  it('answers 413 to a body over 256 KiB and 422 to one with a too long field', async () => {
    const over = await api.patch(`/api/v1/channels/${channelId}`, { name: 'x'.repeat(257 * 1024) });
    expect(over).toMatchObject({ status: 413 });
    expect(over.json()).toMatchObject({ detail: expect.any(String) });
    const within = await api.patch(`/api/v1/channels/${channelId}`, { name: 'x'.repeat(250 * 1024) });
    expect(within.status).toBe(422);
  });

  it('answers 415 to a body that is not declared as JSON', async () => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/xml',
      'nonsense',
      'multipart/form-data',
    ]) {
      const options = { headers: { 'content-type': type } };
      const reply = await api.post('/api/v1/channels', '{"name":"x"}', options);
      expect(reply.status).toBe(415);
      expect(reply.json()).toMatchObject({ detail: expect.any(String) });
    }
    const unsaid = await api.post('/api/v1/channels', '{"name":"x"}', { headers: { 'content-type': undefined } });
    expect(unsaid.status).toBe(415);
    const charset = { headers: { 'content-type': 'application/json; charset=utf-8' } };
    expect((await api.patch(`/api/v1/channels/${channelId}`, '{}', charset)).status).toBe(200);
  });

  it('answers 429 with Retry-After to a key over its rate limit, and serves other keys', async () => {
    const limited = await startParleyHere({
      EVENTSTORE_URL: eventStore.url,
      REDIS_URL: redis.url,
      PARLEY_BOOTSTRAP_KEY: parley.apiKey,
      ROLES: 'gateway',
      RATE_LIMIT_PER_KEY: '5',
    });
    const [eager, own] = [
      limited.api.withKey(await newKey(root, ['read'])),
      limited.api.withKey(await newKey(root, ['read'])),
    ];
    try {
      const replies = [];
      for (let n = 0; n < 8; n++) replies.push(await eager.get('/api/v1/channels'));
      expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 429, 429, 429]);
      expect(Number(replies.at(-1)?.headers['retry-after'])).toBeGreaterThan(0);
      expect(replies.at(-1)?.json()).toMatchObject({ detail: expect.any(String) });
      expect((await own.get('/api/v1/channels')).status).toBe(200);
    } finally {
      for (const client of [eager, own]) client.close();
      await limited.stop();
    }
  });
});

describe('paths and methods', () => {
  it.each([
    '%00',
    'a%00b',
    '%0d%0aSet-Cookie:x',
    'a%2fb',
    '..%2f..%2fetc',
    '%2e%2e',
    '%C3%BC',
    '%ff',
    '%zz',
    '%',
    '*',
    'a%20b',
  ])('an id that cannot exist is 404: %s', async (id) => {
    const path = `/api/v1/channels/${id}`;
    for (const reply of [await api.get(path), await api.patch(path, { name: 'x' })]) {
      expect(reply.status).toBe(404);
      expect(reply.headers['set-cookie']).toBeUndefined();
      expect(reply.json()).toMatchObject({ detail: 'Not Found' });
    }
  });

  it('an endless path is refused and not followed', async () => {
    expect((await api.get(`/api/v1/channels/${'x'.repeat(5_000)}`)).status).toBe(404);
    expect([404, 414, 431]).toContain((await api.get(`/api/v1/channels/${'x'.repeat(60_000)}`)).status);
  });

  it('HEAD is GET without the body', async () => {
    for (const path of [`/api/v1/channels/${channelId}`, '/api/v1/channels']) {
      const [get, head] = [await api.get(path), await api.request('HEAD', path)];
      expect(head).toMatchObject({ status: 200, text: '' });
      for (const name of ['content-length', 'content-type', 'etag'] as const) {
        expect(head.headers[name]).toBe(get.headers[name]);
      }
    }
  });

  it('OPTIONS grants no browser access outside the allow-list', async () => {
    const headers = { origin: 'https://evil.example', 'access-control-request-method': 'PATCH' };
    const reply = await api.request('OPTIONS', `/api/v1/channels/${channelId}`, { headers });
    expect(reply.status).toBeLessThan(500);
    expect(reply.headers['access-control-allow-origin']).toBeUndefined();
  });

  it('an answer names its request, which continues the trace that it came with', async () => {
    const trace = '0af7651916cd43dd8448eb211c80319c';
    const headers = { 'x-request-id': 'mine-1', traceparent: `00-${trace}-b7ad6b7169203331-01` };
    const reply = await api.get('/api/v1/channels', { headers });
    expect(reply.headers['x-request-id']).toBe('mine-1');
    expect(reply.headers['traceparent']).toMatch(new RegExp(`^00-${trace}-(?!b7ad6b7169203331)[0-9a-f]{16}-01$`));
    const forged = await api.get('/api/v1/channels', { headers: { 'x-request-id': 'a b\tc' } });
    expect(forged.headers['x-request-id']).not.toBe('a b\tc');
  });
});
