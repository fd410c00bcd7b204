/* Invalid bodies, queries and bytes: each is refused with its error, and nothing is written. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findRunning } from '#infra/data-folder/index.ts';
import type { ApiClient, Reply } from '#test/support/api-client.ts';
import { answerOf } from '#test/support/channel-load.ts';
import { asRecord, readLog } from '#test/support/log-reader.ts';
import { startParleyProcess, type ParleyProcess } from '#test/support/parley-process.ts';
import { exchangeBytes, statusesIn } from '#test/support/raw-socket.ts';

let parley: ParleyProcess;
let api: ApiClient;
let id: string;
let eventstoreUrl: string;

beforeAll(async () => {
  parley = await startParleyProcess({ env: { REQUEST_TIMEOUT_MS: '2000' } });
  await parley.ready();
  api = parley.api;
  id = answerOf(await api.post('/api/v1/channels', { name: 'A channel', participants: [] })).channelId;
  eventstoreUrl = (await findRunning(parley.dataDir))?.eventstoreUrl ?? '';
});

afterAll(() => parley?.stop(), 30_000);

/** Nothing in this file is valid: the channel above stays the only one. */
const eventCount = async (): Promise<number> => (await readLog(eventstoreUrl, 'channel-')).length;

interface Problem {
  readonly type: unknown;
  readonly loc: unknown;
}

/** Types and locations of a 422; the status and the text of anything else, which then does not match. */
function problemsIn(reply: Reply): Problem[] | string {
  const { detail } = asRecord(reply.json());
  if (reply.status !== 422 || !Array.isArray(detail)) return `${reply.status} ${reply.text}`;
  return detail.map((error) => {
    const { type, loc, msg } = asRecord(error);
    return { type, loc, ...(typeof msg !== 'string' && { msg }) };
  });
}

const nested = (depth: number, inner = '1'): string => `${'{"a":'.repeat(depth)}${inner}${'}'.repeat(depth)}`;
const json = (value: unknown): string => JSON.stringify(value);

describe('a body', () => {
  it.each<[string, string | Buffer, string, unknown[]]>([
    ['is missing', '', 'missing', ['body']],
    ['is truncated', '{"name":', 'json_invalid', ['body', 8]],
    ['is not JSON', "{'name': 1}", 'json_invalid', ['body', 1]],
    ['holds NaN', '{"meta_data":{"n":NaN}}', 'json_invalid', ['body', 18]],
    ['is not UTF-8', Buffer.from([0x7b, 0x22, 0x6e, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]), 'json_invalid', ['body', 0]],
    ['is a list', '[]', 'model_attributes_type', ['body']],
    ['is null', 'null', 'model_attributes_type', ['body']],
    ['is a string', '"x"', 'model_attributes_type', ['body']],
    ['assigns the prototype', '{"__proto__":{"name":"x"}}', 'extra_forbidden', ['body', '__proto__']],
    ['assigns the prototype with an escaped name', '{"\\u005f_proto__":{}}', 'extra_forbidden', ['body', '__proto__']],
    [
      'assigns the prototype in a nested object',
      '{"meta_data":{"__proto__":1}}',
      'extra_forbidden',
      ['body', 'meta_data', '__proto__'],
    ],
    [
      'assigns the prototype through the constructor',
      '{"meta_data":{"constructor":{"prototype":1}}}',
      'extra_forbidden',
      ['body', 'meta_data', 'constructor', 'prototype'],
    ],
    ['has a name that is null', json({ name: null }), 'string_type', ['body', 'name']],
    ['has a name that is a number', json({ name: 12 }), 'string_type', ['body', 'name']],
    ['has a name of 257 characters', json({ name: '€'.repeat(257) }), 'string_too_long', ['body', 'name']],
    ['has half a surrogate pair', '{"name":"\\ud800"}', 'string_unicode', ['body', 'name']],
    ['has meta_data that is a list', json({ meta_data: [] }), 'dict_type', ['body', 'meta_data']],
    ['has meta_data that is text', json({ meta_data: '{}' }), 'dict_type', ['body', 'meta_data']],
    ['has meta_data of 33 levels', `{"meta_data":${nested(33)}}`, 'value_error', ['body', 'meta_data']],
    [
      'has meta_data of 1,001 values',
      json({ meta_data: { list: Array.from({ length: 1_000 }, () => 1) } }),
      'value_error',
      ['body', 'meta_data'],
    ],
    [
      'has meta_data of 65 KiB',
      json({ meta_data: { x: 'x'.repeat(65 * 1024) } }),
      'value_error',
      ['body', 'meta_data'],
    ],
    [
      'has a number beyond the range of doubles',
      '{"meta_data":{"n":1e999}}',
      'finite_number',
      ['body', 'meta_data', 'n'],
    ],
    [
      'has a number of too many digits',
      '{"meta_data":{"n":9007199254740993}}',
      'value_error',
      ['body', 'meta_data', 'n'],
    ],
    ['has a zero with a sign', '{"meta_data":{"list":[0,-0]}}', 'value_error', ['body', 'meta_data', 'list', 1]],
    ['has such a number where none is expected', '{"unknown":1e-400}', 'value_error', ['body', 'unknown']],
    [
      'names an unknown behaviour',
      json({ agent_invocation_behavior: 'never' }),
      'enum',
      ['body', 'agent_invocation_behavior'],
    ],
  ])('that %s is 422', async (_what, body, type, loc) => {
    expect(problemsIn(await api.patch(`/api/v1/channels/${id}`, body))).toEqual([{ type, loc }]);
  });

  it('that is nested 20,000 deep is refused at the maximum depth', async () => {
    for (const body of [nested(20_000), `{"meta_data":${nested(20_000)}}`, '['.repeat(200_000)]) {
      expect(problemsIn(await api.patch(`/api/v1/channels/${id}`, body))).toMatchObject([{ type: 'json_invalid' }]);
    }
  });

  it('with many faults gets all of them in one answer', async () => {
    const body = {
      name: 5,
      type: 'fax',
      channel_type: 'x',
      source: 7,
      participants: [{ type: 'agent' }, { type: 'pet' }, 3],
    };
    expect(problemsIn(await api.post('/api/v1/channels', body))).toEqual(
      expect.arrayContaining([
        { type: 'string_type', loc: ['body', 'name'] },
        { type: 'enum', loc: ['body', 'type'] },
        { type: 'enum', loc: ['body', 'channel_type'] },
        { type: 'enum', loc: ['body', 'source'] },
        { type: 'missing', loc: ['body', 'participants', 0, 'agent', 'id'] },
        { type: 'union_tag_invalid', loc: ['body', 'participants', 1] },
      ]),
    );
  });

  it('that is refused is echoed only up to a limit', async () => {
    const reply = await api.patch(`/api/v1/channels/${id}`, { name: ['x'.repeat(200_000)] });
    expect(reply.status).toBe(422);
    expect(reply.text.length).toBeLessThan(20_000);
  });
});

describe('a query', () => {
  it.each([
    ['size=5abc', 'int_parsing', 'size'],
    ['size=', 'int_parsing', 'size'],
    ['size=1e1', 'int_parsing', 'size'],
    ['size=0', 'greater_than_equal', 'size'],
    ['size=101', 'less_than_equal', 'size'],
    ['page=0', 'greater_than_equal', 'page'],
    ['page=-1', 'greater_than_equal', 'page'],
    ['page=99999999999999999999', 'less_than_equal', 'page'],
    ['size=1&size=2', 'int_type', 'size'],
    ['channel_type=chat&channel_type=chat', 'enum', 'channel_type'],
    ['type=fax', 'enum', 'type'],
    ['archived=perhaps', 'bool_parsing', 'archived'],
    ['agent=a%20b', 'string_pattern_mismatch', 'agent'],
    ['agent=%00', 'string_pattern_mismatch', 'agent'],
    ['cursor=junk', 'value_error', 'cursor'],
    [`cursor=${'A'.repeat(3_000)}`, 'string_too_long', 'cursor'],
  ])('%s is 422', async (query, type, name) => {
    expect(problemsIn(await api.get(`/api/v1/channels?${query}`))).toEqual([{ type, loc: ['query', name] }]);
  });

  it('with unknown parameters is answered normally', async () => {
    for (const query of ['x=1', '__proto__=1', 'constructor[prototype]=1', '%', '&&=&', 'size=10']) {
      expect((await api.get(`/api/v1/channels?${query}`)).status).toBe(200);
    }
  });
});

describe('headers of a request', () => {
  it('are checked: idempotency keys and positions', async () => {
    const send = (headers: Record<string, string>) => api.patch(`/api/v1/channels/${id}`, {}, { headers });
    for (const key of ['', 'x'.repeat(256), 'with space', 'ü']) {
      const replies = problemsIn(await send({ 'idempotency-key': key }));
      expect(replies).toEqual([{ type: 'value_error', loc: ['header', 'idempotency-key'] }]);
    }
    const read = await api.get(`/api/v1/channels/${id}`, { headers: { 'parley-position': 'A'.repeat(40) } });
    expect(problemsIn(read)).toEqual([{ type: 'value_error', loc: ['header', 'parley-position'] }]);
    expect((await send({ 'idempotency-key': 'x'.repeat(255) })).status).toBe(200);
  });
});

describe('bytes on a connection', () => {
  const host = 'Host: localhost\r\n';
  const get = `GET /health/live HTTP/1.1\r\n${host}\r\n`;

  it('that are not HTTP after a request end the connection, and the answer to the request is not lost', async () => {
    const statuses = statusesIn(await exchangeBytes(parley.port, [`${get}\x00\x01\x02 garbage\r\n\r\n`]));
    expect(statuses[0]).toBe(200);
    expect(statuses.slice(1).filter((status) => status !== 400)).toEqual([]);
  });

  it.each([
    ['garbage', Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00])],
    ['no version', 'GET /api/v1/channels\r\n\r\n'],
    [
      'a body of two lengths',
      `POST /api/v1/channels HTTP/1.1\r\n${host}Content-Length: 2\r\nContent-Length: 5\r\n\r\n{}`,
    ],
    [
      'a length and chunks',
      `POST /x HTTP/1.1\r\n${host}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ['a negative length', `POST /x HTTP/1.1\r\n${host}Content-Length: -1\r\n\r\n`],
    ['a line break inside of a header', `GET / HTTP/1.1\r\n${host}X: a\nb\r\n\r\n`],
    ['a broken chunk', `POST /api/v1/channels HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\nZZ\r\n`],
  ])('with %s are refused, and the connection is closed', async (_what, bytes) => {
    const received = await exchangeBytes(parley.port, [bytes]);
    expect(statusesIn(received).at(-1)).toBeGreaterThanOrEqual(400);
    expect(statusesIn(received).at(-1)).toBeLessThan(500);
  });

  it('with endless headers are 431', async () => {
    const received = await exchangeBytes(parley.port, [`GET / HTTP/1.1\r\n${host}X: ${'x'.repeat(70_000)}\r\n\r\n`]);
    expect(statusesIn(received)).toEqual([431]);
  });

  it('that arrive slowly without end are cut off, headers and bodies alike', async () => {
    const start = `POST /api/v1/channels HTTP/1.1\r\n${host}Authorization: ${parley.apiKey}\r\n`;
    const drip = Array.from({ length: 600 }, (_, n) => `X-${n}: x\r\n`);
    const body = [`${start}Content-Type: application/json\r\nContent-Length: 5000\r\n\r\n`, ...drip.map(() => ' ')];
    const [headers, slowBody] = await Promise.all([
      exchangeBytes(parley.port, [start, ...drip], { everyMs: 50 }),
      exchangeBytes(parley.port, body, { everyMs: 50 }),
    ]);
    for (const received of [headers, slowBody]) expect(statusesIn(received)).toEqual([408]);
  });

  it('of many idle connections do not block other clients', async () => {
    const idle = Array.from({ length: 200 }, () => exchangeBytes(parley.port, ['GET /he'], { timeoutMs: 25_000 }));
    expect((await api.get('/api/v1/channels')).status).toBe(200);
    expect((await Promise.all(idle)).flatMap(statusesIn)).toEqual(idle.map(() => 408));
  });

  it('have changed nothing', async () => {
    expect(parley.alive()).toBe(true);
    await parley.ready();
    expect(await eventCount()).toBe(1);
    expect(parley.output()).not.toMatch(/"level":"(error|fatal)"/);
  });
});
