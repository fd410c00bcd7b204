/** A line in the log for each request, without what may be secret. */
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

import { afterEach, expect, test } from 'vitest';

import { createLogger } from '#libs/platform/telemetry/index.ts';
import { eventually } from '#test/support/eventually.ts';

import { type Edge, startEdge } from './edge.ts';

let edge: Edge | undefined;
afterEach(async () => {
  await edge?.server.close();
  edge = undefined;
});

async function start(options: Parameters<typeof startEdge>[0]) {
  const written: string[] = [];
  const logger = createLogger({ level: 'info' }, { write: (line) => written.push(line) });
  edge = await startEdge({ logger, ...options }, (app) => {
    app.get('/slow', { config: { scope: 'read' } }, async (_request, reply) => {
      reply.raw.write('begun');
      await pause(60_000, undefined, { ref: false, signal: signalOf(reply.raw) }).catch(() => undefined);
      return reply;
    });
  });
  const answered = (): Record<string, unknown>[] =>
    written.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'answered');
  return { edge, answered, written };
}

function signalOf(response: { once(event: 'close', listener: () => void): unknown }): AbortSignal {
  const closed = new AbortController();
  response.once('close', () => closed.abort());
  return closed.signal;
}

test('names the route, the key, the address and the status, and nothing that a caller could hide a secret in', async () => {
  const { edge, answered, written } = await start({ accessLog: true, trustedProxies: ['127.0.0.1'] });
  await edge.call('/things/secret-id?cursor=secret-cursor', {
    headers: { 'x-forwarded-for': '192.0.2.7', 'x-request-id': 'request-1', cookie: 'secret-cookie' },
  });
  await edge.call('/nowhere/secret-path');
  await edge.call('/things/a', { headers: { authorization: 'Bearer secret-key' } });
  await edge.call('/failures', { method: 'POST', body: '{"secret-body": 1}' });
  await eventually(() => answered().length === 4);
  const common = { method: 'GET', key_id: 'key-1', organization_id: 'org-1', address: '127.0.0.1', is_complete: true };
  expect(answered()).toMatchObject([
    { ...common, route: '/things/:id', request_id: 'request-1', address: '192.0.2.7', duration_ms: expect.any(Number) },
    { ...common, route: null, status: 404, key_id: null, organization_id: null },
    { ...common, route: '/things/:id', status: 401, key_id: null, organization_id: null },
    { ...common, method: 'POST', route: '/failures', status: 422 },
  ]);
  expect(written.join('')).not.toMatch(/secret-/);
});

test('has a line for a caller that left before the end of the reply', async () => {
  const { edge, answered } = await start({ accessLog: true });
  const { hostname, port } = new URL(edge.url);
  const socket = connect(Number(port), hostname);
  socket.write(`GET /slow HTTP/1.1\r\nhost: a\r\nauthorization: ${edge.keys.first}\r\n\r\n`);
  await new Promise((resolve) => socket.once('data', resolve));
  socket.destroy();
  await eventually(() => answered().length === 1);
  expect(answered()).toMatchObject([{ route: '/slow', status: 200, is_complete: false }]);
});

test('is off unless it is asked for', async () => {
  const { edge, answered } = await start({});
  expect((await edge.call('/things/a')).status).toBeLessThan(500);
  await edge.server.close();
  expect(answered()).toEqual([]);
});
