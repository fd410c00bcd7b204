import { Agent, request as httpRequest } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { createLogger } from '#libs/platform/telemetry/index.ts';
import { eventually } from '#test/support/eventually.ts';

import { type Edge, startEdge } from './edge.ts';

const started: Edge[] = [];
async function start(...args: Parameters<typeof startEdge>): Promise<Edge> {
  const edge = await startEdge(...args);
  started.push(edge);
  return edge;
}
afterEach(() => Promise.all(started.splice(0).map((edge) => edge.server.close())));

test('the root names the documentation and the other pages for machines, which are there', async () => {
  const { url } = await start();
  const answer = await fetch(url);
  const { documentation, openapi, health, metrics } = (await answer.json()) as Record<string, string>;
  expect(answer.status).toBe(200);
  for (const page of [documentation, openapi, health, metrics]) {
    expect([page, (await fetch(`${url}${page}`)).status]).toEqual([page, 200]);
  }
});

test('live is ok without a key', async () => {
  const edge = await start();
  const answer = await fetch(`${edge.url}/health/live`);
  expect(answer.status).toBe(200);
  expect(await answer.json()).toEqual({ status: 'ok' });
});

test('ready shows every probe with its detail', async () => {
  const edge = await start({
    probes: [{ name: 'projection', check: async () => ({ ok: true, detail: { lag_events: 7 } }) }],
  });
  const answer = await fetch(`${edge.url}/health/ready`);
  expect(answer.status).toBe(200);
  expect(await answer.json()).toEqual({
    status: 'ok',
    checks: { projection: { status: 'ok', detail: { lag_events: 7 } } },
  });
});

test('ready is 503 when one probe is down, throws, or never answers', async () => {
  const edge = await start({
    probes: [
      { name: 'good', check: async () => ({ ok: true }) },
      { name: 'down', check: async () => ({ ok: false, detail: { reason: 'paused' } }) },
      { name: 'throws', check: () => Promise.reject(new Error('connect 10.0.0.1')) },
      { name: 'hangs', check: () => new Promise(() => undefined) },
    ],
  });
  const answer = await fetch(`${edge.url}/health/ready`);
  expect(answer.status).toBe(503);
  expect(answer.headers.get('retry-after')).not.toBeNull();
  const body = await answer.text();
  expect(JSON.parse(body)).toMatchObject({
    status: 'down',
    checks: {
      good: { status: 'ok' },
      down: { status: 'down', detail: { reason: 'paused' } },
      throws: { status: 'down' },
      hangs: { status: 'down' },
    },
  });
  expect(body).not.toContain('10.0.0.1');
});

test('metrics count requests by the pattern of their route', async () => {
  const edge = await start();
  await edge.call('/things/one');
  await edge.call('/things/two');
  const text = await (await fetch(`${edge.url}/metrics`)).text();
  expect(text).toContain('parley_http_request_duration_seconds_count{method="GET",route="/things/:id",status="200"} 1');
  expect(text).toContain('parley_http_request_duration_seconds_count{method="GET",route="/things/:id",status="404"} 1');
  expect(text).not.toContain('things/one');
});

test('the log names failures by their request ids, and shows no key; other answers are logged only at debug', async () => {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const quiet = await start({ logger: createLogger({ level: 'info' }, destination) });
  await quiet.call(`/things/one?key=${quiet.keys.first}`);
  await quiet.call('/things/two');
  expect(lines).toEqual([]);
  const failed = await quiet.call('/failures', { method: 'POST', body: '{"how":"bug"}' });
  const talkative = await start({ logger: createLogger({ level: 'debug' }, destination) });
  await talkative.call('/things/two', { headers: { 'x-request-id': 'named' } });
  await eventually(() => lines.length === 2);
  expect(lines.map((line): unknown => JSON.parse(line))).toMatchObject([
    {
      level: 'error',
      request_id: failed.headers.get('x-request-id'),
      err: { stack: expect.stringContaining('edge.ts') },
    },
    { level: 'debug', request_id: 'named', method: 'GET', route: '/things/:id', status: 404 },
  ]);
  expect(lines.join('')).not.toMatch(/parley_live_[0-9A-Za-z]/);
});

const parameterSchema = z.looseObject({ name: z.string(), in: z.string() });
const documentSchema = z.object({
  openapi: z.string(),
  security: z.array(z.record(z.string(), z.array(z.string()))),
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.looseObject({
        parameters: z.array(z.union([parameterSchema, z.object({ $ref: z.string() })])).default([]),
        requestBody: z.object({ required: z.boolean() }).optional(),
        responses: z.record(z.string(), z.unknown()),
      }),
    ),
  ),
  components: z.object({
    schemas: z.record(z.string(), z.unknown()),
    parameters: z.record(z.string(), parameterSchema),
    securitySchemes: z.record(z.string(), z.unknown()),
  }),
});

test('the OpenAPI document describes the routes: inputs, errors, security, deprecations', async () => {
  const edge = await start();
  const document = documentSchema.parse(await (await fetch(`${edge.url}/openapi.json`)).json());
  expect(document.openapi).toBe('3.1.0');
  expect(document.security).toEqual([{ ApiKey: [] }]);
  expect(Object.keys(document.paths).sort()).toEqual(['/failures', '/things', '/things/{id}']);
  const list = document.paths['/things']?.['get'];
  const parametersOf = (operation = list) =>
    (operation?.parameters ?? []).map((one) =>
      '$ref' in one ? document.components.parameters[String(one.$ref).split('/').at(-1) ?? ''] : one,
    );
  const parameter = (name: string) => parametersOf().find((one) => one?.['name'] === name);
  expect(parameter('size')).toMatchObject({
    in: 'query',
    required: false,
    schema: { type: 'integer', minimum: 1, maximum: 100, default: 50 },
  });
  expect(parameter('old')).toMatchObject({ deprecated: true });
  expect(parameter('kind')).not.toHaveProperty('deprecated');
  expect(Object.keys(list?.responses ?? {})).toEqual(
    expect.arrayContaining(['200', '401', '403', '404', '422', '429', '503']),
  );
  const change = document.paths['/things/{id}']?.['patch'];
  expect(change?.requestBody?.required).toBe(true);
  expect(parametersOf(change).map((one) => one?.['name'])).toEqual(['id', 'Idempotency-Key', 'If-Match']);
  expect(Object.keys(document.components.schemas)).toEqual(
    expect.arrayContaining(['HTTPValidationError', 'PageMeta', 'Thing']),
  );
});

test('every reference of the document resolves, and every schema is referenced', async () => {
  const edge = await start();
  const text = await (await fetch(`${edge.url}/openapi.json`)).text();
  const named = new Set([...text.matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name));
  expect(named).toEqual(new Set(Object.keys(documentSchema.parse(JSON.parse(text)).components.schemas)));
});

test('the reference page and its script come from this server alone', async () => {
  const edge = await start();
  const page = await fetch(`${edge.url}/docs`);
  expect(page).toMatchObject({ status: 200, redirected: true, url: `${edge.url}/docs/` });
  const html = await page.text();
  expect(html).not.toMatch(/(?:src|href)="(?:https?:)?\/\//);
  expect(page.headers.get('content-security-policy')).toContain("connect-src 'self'");
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
  const script = await fetch(new URL(/<script src="([^"]+)"/.exec(html)?.[1] ?? '', page.url));
  expect(script.status).toBe(200);
  expect(script.headers.get('content-type')).toContain('javascript');
  expect((await script.text()).length).toBeGreaterThan(1_000_000);
  const head = await fetch(page.url, { method: 'HEAD' });
  expect(head.headers.get('content-length')).toBe(`${Buffer.byteLength(html)}`);
});

test('closing finishes requests in flight, and refuses new ones', async () => {
  const { promise: entered, resolve: enter } = Promise.withResolvers<void>();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const edge = await startEdge({}, (app) => {
    app.post('/slow', { config: { scope: 'write' } }, async () => {
      enter();
      await released;
      return { done: true };
    });
  });
  // A keep-alive connection: a request that follows on it meets the stopping server.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const idle = await statusOver(agent, edge, '/things/one');
  const slow = edge.call('/slow', { method: 'POST' });
  await entered;
  const closed = edge.server.close();
  const late = await statusOver(agent, edge, '/things/one').catch((error: NodeJS.ErrnoException) => error.code);
  release();
  const answer = await slow;
  expect(idle).toBe(200);
  expect(answer.status).toBe(200);
  expect(await answer.json()).toEqual({ done: true });
  expect(answer.headers.get('connection')).toBe('close');
  expect([503, 'ECONNREFUSED', 'ECONNRESET']).toContain(late);
  await closed;
  agent.destroy();
});

test('closing cuts requests that have not ended by the end of the grace period', async () => {
  const { promise: entered, resolve: enter } = Promise.withResolvers<void>();
  const edge = await startEdge({}, (app) => {
    app.post('/never', { config: { scope: 'write' } }, () => {
      enter();
      return new Promise<never>(() => undefined);
    });
  });
  const never = edge.call('/never', { method: 'POST' }).catch(() => 'cut');
  await entered;
  await edge.server.close(50);
  expect(await never).toBe('cut');
});

function statusOver(agent: Agent, edge: Edge, path: string): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const sent = httpRequest(edge.url + path, { agent, headers: { authorization: edge.keys.first } }, (answer) => {
    answer.resume();
    answer.once('end', () => resolve(answer.statusCode));
  });
  sent.once('error', reject);
  sent.end();
  return promise;
}
