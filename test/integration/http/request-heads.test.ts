/** Decisions on the head of a request, before its body is read. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Upgrades } from '#libs/platform/websocket/index.ts';
import { exchangeBytes } from '#test/support/raw-socket.ts';

import { type Edge, startEdge } from './edge.ts';

let edge: Edge;
beforeAll(async () => {
  edge = await startEdge({ upgrades: new Upgrades() });
});
afterAll(() => edge.server.close());

/** Sends lines of a head unchanged, with `connection: close`, and returns the status and the JSON of the answer. */
async function send(lines: readonly string[], body = ''): Promise<{ status: number; body: unknown; head: string }> {
  const port = Number(new URL(edge.url).port);
  const received = await exchangeBytes(port, [[...lines, 'Connection: close', '', body].join('\r\n')]);
  const [head = '', json = ''] = received.split('\r\n\r\n');
  expect(head).toMatch(/^content-type: application\/json/im);
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]), body: JSON.parse(json) as unknown, head };
}

const error = (code: string) => ({ detail: expect.any(String) as unknown, code });

describe('a path or method that does not exist', () => {
  const bodies: [string, RequestInit][] = [
    ['malformed JSON', { body: '{' }],
    ['a body of another type', { body: 'x', headers: { 'content-type': 'text/plain' } }],
    ['a body that is too large', { body: 'x'.repeat(300_000) }],
    ['a compressed body', { body: 'x', headers: { 'content-encoding': 'gzip' } }],
  ];

  it.each(bodies)('is 404 with %s', async (_what, init) => {
    const answer = await edge.call('/no/such/path', { method: 'POST', ...init });
    expect([answer.status, await answer.text()]).toEqual([404, '{"detail":"Not Found","code":"not_found"}']);
  });

  it.each(bodies)('is 405 with Allow with %s', async (_what, init) => {
    const answer = await edge.call('/things/one', { method: 'POST', ...init });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD, PATCH']);
    expect(answer.headers.get('x-request-id')).toEqual(expect.any(String));
  });

  it('is 405 for the reference page, too', async () => {
    const answer = await edge.call('/docs', { method: 'POST', body: '{' });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });
});

describe('header fields that may occur once', () => {
  const get = 'GET /things/one HTTP/1.1';

  it('include Host: without it, HTTP/1.1 is 400 in JSON', async () => {
    expect(await send([get])).toMatchObject({ status: 400, body: error('bad_request') });
    expect(await send(['GET /docs HTTP/1.1'])).toMatchObject({ status: 400, body: error('bad_request') });
  });

  it.each(['Host', 'Authorization', 'Content-Type'])('include %s: twice, a request is 400', async (name) => {
    const own = { Host: 'a', Authorization: edge.keys.first, 'Content-Type': 'application/json' };
    const lines = Object.entries(own).map(([field, value]) => `${field}: ${value}`);
    expect(await send(['DELETE /things/one HTTP/1.1', ...lines])).toMatchObject({ status: 405 });
    const twice = await send([get, ...lines, `${name.toLowerCase()}: b`]);
    expect(twice).toMatchObject({ status: 400, body: error('bad_request') });
    expect(twice.body).toMatchObject({ detail: expect.stringContaining(name) as unknown });
  });
});

describe('a request for a websocket', () => {
  it('is refused for its head before it is served', async () => {
    const lines = ['GET /socket HTTP/1.1', 'Upgrade: websocket', 'Connection: upgrade', 'Host: a', 'Host: b'];
    expect(await send(lines)).toMatchObject({ status: 400, body: error('bad_request') });
    expect(await send(lines.slice(0, -1))).toMatchObject({ status: 503, body: error('stopping') });
  });
});

describe('an expectation', () => {
  const patch = ['PATCH /things/one HTTP/1.1', 'Host: a', 'Content-Type: application/json', 'Content-Length: 2'];

  it('other than 100-continue is 417 in JSON', async () => {
    const answer = await send([...patch, 'Expect: a miracle'], '{}');
    expect(answer).toMatchObject({ status: 417, body: error('expectation_failed') });
  });

  it('of 100-continue is met', async () => {
    const port = Number(new URL(edge.url).port);
    const lines = [
      ...patch,
      `Authorization: ${edge.keys.first}`,
      'Expect: 100-continue',
      'Connection: close',
      '',
      '{}',
    ];
    expect(await exchangeBytes(port, [lines.join('\r\n')])).toMatch(/^HTTP\/1\.1 100 .*^HTTP\/1\.1 200 /ms);
  });
});

describe('a body', () => {
  const patch = (headers: Record<string, string>) => edge.call('/things/one', { method: 'PATCH', body: '{}', headers });

  it.each(['gzip', 'br', 'identity, gzip'])('in the encoding %s is 415, with the supported one', async (encoding) => {
    const answer = await patch({ 'content-encoding': encoding });
    expect([answer.status, answer.headers.get('accept-encoding')]).toEqual([415, 'identity']);
    expect(await answer.json()).toMatchObject(error('unsupported_media_type'));
  });

  it.each(['utf-16', 'iso-8859-1', '"utf-16le"', 'utf-8x'])('in the charset %s is 415', async (charset) => {
    const answer = await patch({ 'content-type': `application/json; charset=${charset}` });
    expect(answer.status).toBe(415);
    expect(await answer.json()).toMatchObject(error('unsupported_media_type'));
  });

  it.each([
    '; charset=utf-8',
    ';charset=UTF-8',
    '; charset="utf-8"',
    '; profile="; charset=utf-16"',
    ';',
    '; charset=',
    '',
  ])('of the type application/json%s is accepted', async (parameters) => {
    const headers = { 'content-type': `application/json${parameters}`, 'content-encoding': 'identity' };
    expect((await patch(headers)).status).toBe(200);
  });
});
