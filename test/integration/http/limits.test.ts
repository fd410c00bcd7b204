import { once } from 'node:events';
import { connect } from 'node:net';

import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { createApiKey, type Principal } from '#libs/platform/http/index.ts';
import { Upgrades } from '#libs/platform/websocket/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { type Edge, startEdge } from './edge.ts';

const started: Edge[] = [];
async function start(...args: Parameters<typeof startEdge>): Promise<Edge> {
  const edge = await startEdge(...args);
  started.push(edge);
  return edge;
}
afterEach(() => Promise.all(started.splice(0).map((edge) => edge.server.close())));

const DAY_MS = 86_400_000;

const knownPrincipal: Principal = {
  organizationId: 'org-1',
  principalType: 'user',
  principalId: 'user',
  keyId: 'key',
  scopes: new Set(['read']),
  isMember: false,
  expiresAtMs: null,
};

test('a key that has used up its window is 429 with Retry-After; another key is not', async () => {
  const edge = await start({ rateLimits: { perKey: { max: 3, windowMs: DAY_MS }, perAddress: false } });
  const statuses: number[] = [];
  for (let request = 0; request < 4; request += 1) statuses.push((await edge.call('/things/one')).status);
  expect(statuses).toEqual([200, 200, 200, 429]);
  const refused = await edge.call('/things/one');
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(86_000);
  expect(await refused.json()).toMatchObject({ detail: 'Too many requests', code: 'rate_limited' });
  expect((await edge.call('/things/one', { headers: { authorization: edge.keys.reader } })).status).toBe(200);
});

test('guessing keys and paths uses up the window of the address, before authentication', async () => {
  const edge = await start({ rateLimits: { perKey: false, perAddress: { max: 3, windowMs: DAY_MS } } });
  const guess = { headers: { authorization: 'guess' } };
  const statuses = [
    (await edge.call('/things/one', guess)).status,
    (await edge.call('/nowhere')).status,
    (await edge.call('/things/one', guess)).status,
    (await edge.call('/things/one', guess)).status,
    (await edge.call('/things/one')).status,
    (await edge.call('/nowhere')).status,
  ];
  expect(statuses).toEqual([401, 404, 401, 429, 429, 429]);
});

test('an address with too many lookups of unknown keys is 429 for further ones, and not for known ones', async () => {
  const KNOWN = createApiKey();
  // Like the real authenticator: synchronous for a key that it has looked up before.
  const lookedUp = new Set<string>();
  const authenticate = (key: string): Principal | null | Promise<Principal | null> => {
    const principal = key === KNOWN ? knownPrincipal : null;
    if (lookedUp.has(key)) return principal;
    return Promise.resolve(principal).finally(() => lookedUp.add(key));
  };
  const isKnown = (key: string): boolean => key === KNOWN;
  const answerTo = (edge: Edge, authorization: string) => edge.call('/things/one', { headers: { authorization } });
  const statusWith = async (edge: Edge, key: string): Promise<number> => (await answerTo(edge, key)).status;
  const guess = (edge: Edge, count: number): Promise<number[]> =>
    Promise.all(Array.from({ length: count }, () => statusWith(edge, createApiKey())));

  const edge = await start({ authenticator: { authenticate, isKnown } });
  expect(await statusWith(edge, KNOWN)).toBe(200);
  for (let guesses = 0; guesses < 600; guesses += 100) expect(new Set(await guess(edge, 100))).toEqual(new Set([401]));
  expect(new Set(await guess(edge, 10))).toEqual(new Set([429]));
  expect(Number((await answerTo(edge, createApiKey())).headers.get('retry-after'))).toBeGreaterThan(0);
  expect(await statusWith(edge, KNOWN)).toBe(200);
  lookedUp.clear();
  expect(await statusWith(edge, KNOWN)).toBe(200);

  // Behind a proxy that limits by itself, callers may share an address.
  const proxied = await start({ authenticator: { authenticate, isKnown }, rateLimits: { perAddress: false } });
  for (let guesses = 0; guesses < 700; guesses += 100) {
    expect(new Set(await guess(proxied, 100))).toEqual(new Set([401]));
  }
});

test('websocket requests use up the window of the address, like all others', async () => {
  const upgrades = new Upgrades();
  const edge = await start({ upgrades, rateLimits: { perKey: false, perAddress: { max: 2, windowMs: DAY_MS } } });
  const upgrade = async (): Promise<string> => {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(edge.url).port) });
    socket.write('GET /socket HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n');
    let answer = '';
    for await (const chunk of socket) answer += String(chunk);
    return answer;
  };
  expect((await edge.call('/things/one')).status).toBe(200);
  // No websocket server is attached: requests within the limit are answered accordingly.
  expect(await upgrade()).toMatch(/^HTTP\/1.1 503 /);
  const refused = await upgrade();
  expect(refused).toMatch(/^HTTP\/1.1 429 Too Many Requests\r\n/);
  expect(Number(/retry-after: (\d+)/.exec(refused)?.[1])).toBeGreaterThan(86_000);
  expect(refused).toContain('{"detail":"Too many requests","code":"rate_limited"}');
  expect((await edge.call('/things/one')).status).toBe(429);
});

test('health and metrics are never limited', async () => {
  const edge = await start({
    rateLimits: { perKey: { max: 1, windowMs: DAY_MS }, perAddress: { max: 1, windowMs: DAY_MS } },
  });
  for (let request = 0; request < 5; request += 1) expect((await edge.call('/health/live')).status).toBe(200);
});

test('a trusted proxy names the address, no other client does', async () => {
  const limits = { perKey: false, perAddress: { max: 1, windowMs: DAY_MS } } as const;
  const from = (edge: Edge, address: string) => edge.call('/things/one', { headers: { 'x-forwarded-for': address } });
  const open = await start({ rateLimits: limits });
  expect([(await from(open, '10.0.0.1')).status, (await from(open, '10.0.0.2')).status]).toEqual([200, 429]);
  const proxied = await start({ rateLimits: limits, trustedProxies: ['127.0.0.1'] });
  expect([(await from(proxied, '10.0.0.1')).status, (await from(proxied, '10.0.0.2')).status]).toEqual([200, 200]);
  // One IPv6 network of 64 bits is one caller.
  expect([(await from(proxied, '2001:db8::1')).status, (await from(proxied, '2001:db8:0:0:ffff::2')).status]).toEqual([
    200, 429,
  ]);
  expect((await from(proxied, '2001:db8:0:1::1')).status).toBe(200);
});

test.each([undefined, '{}'])(
  'a handler that does not answer in time is 503 with Retry-After: body %s',
  async (body) => {
    const edge = await start({ handlerTimeoutMs: 50 }, (app) => {
      app.post('/never', { config: { scope: 'write' } }, () => new Promise<never>(() => undefined));
    });
    const headers = { 'content-type': 'application/json' };
    const answer = await edge.call('/never', { method: 'POST', ...(body !== undefined && { body, headers }) });
    expect(answer.status).toBe(503);
    expect(answer.headers.get('retry-after')).toBe('2');
    expect(await answer.json()).toMatchObject({ code: 'timeout' });
  },
);

test('only origins of the allow-list may call from a browser', async () => {
  const edge = await start({ corsOrigins: ['https://app.example'] });
  const preflight = (origin: string) =>
    edge.call('/things/one', { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'PATCH' } });
  const allowed = await preflight('https://app.example');
  expect(allowed.status).toBe(204);
  expect(allowed.headers.get('access-control-allow-origin')).toBe('https://app.example');
  expect(allowed.headers.get('access-control-allow-methods')).toContain('PATCH');
  expect((await preflight('https://evil.example')).headers.get('access-control-allow-origin')).toBeNull();
  const closed = await start();
  const refused = await closed.call('/things/one', { headers: { origin: 'https://app.example' } });
  expect(refused.headers.get('access-control-allow-origin')).toBeNull();
});

test('a route without scope and not public is refused at start', async () => {
  await expect(startEdge({}, (app) => void app.get('/open', () => ({})))).rejects.toThrow('needs config.scope');
});

test('a caller that disconnects before its request is processed causes no server error', async () => {
  const lines: string[] = [];
  const logger = pino({ level: 'error' }, { write: (line) => void lines.push(line) });
  const edge = await start({ logger });
  const callers = Array.from({ length: 50 }, async () => {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(edge.url).port) });
    await once(socket, 'connect');
    socket.write('GET /things/one HTTP/1.1\r\nhost: x\r\n\r\n', () => socket.resetAndDestroy());
    await once(socket, 'close');
  });
  await Promise.all(callers);
  expect((await edge.call('/things/one')).status).toBe(200);
  expect(lines).toEqual([]);
});

test('bodies beyond the memory of the process are 503 before they are read, and are served once others have ended', async () => {
  const edge = await start({ maxBodyBytes: 300_000 });
  const name = 'x'.repeat(140_000);
  const patch = (): Promise<Response> =>
    edge.call('/things/one', {
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name }),
    });
  // Two requests whose bodies do not arrive to their end.
  const { hostname, port } = new URL(edge.url);
  const slow = [0, 1].map(() => connect(Number(port), hostname));
  for (const socket of slow) {
    await once(socket, 'connect');
    socket.write(
      `PATCH /things/one HTTP/1.1\r\nhost: x\r\nauthorization: ${edge.keys.first}\r\ncontent-type: application/json\r\ncontent-length: 140000\r\n\r\n{`,
    );
  }
  const refused = await eventually(async () => {
    const answer = await patch();
    expect(answer.status).toBe(503);
    return answer;
  });
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(await refused.json()).toMatchObject({ code: 'overloaded' });
  // Requests without bodies are served meanwhile.
  expect((await edge.call('/things/one')).status).toBe(200);
  for (const socket of slow) socket.destroy();
  // Read, and found to be too long.
  await eventually(async () => expect((await patch()).status).toBe(422));
});
