import { connect } from 'node:net';
import { once } from 'node:events';
import { text as readAll } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Edge, startEdge } from './edge.ts';

let edge: Edge;
beforeAll(async () => {
  edge = await startEdge();
});
afterAll(() => edge.server.close());

const patch = (body: string, headers: Record<string, string> = {}): Promise<Response> =>
  edge.call('/things/one', { method: 'PATCH', body, headers });

describe('authentication', () => {
  test.each(['', 'Bearer ', 'bearer ', 'Token '])('accepts a key with the prefix %j', async (prefix) => {
    const answer = await edge.call('/things/one', { headers: { authorization: prefix + edge.keys.first } });
    expect(answer.status).toBe(200);
  });

  test.each(['', 'x', 'Basic dXNlcjpwYXNz', 'Bearer', 'parley_live_junk', 'Bearer a b'])(
    'answers 401 to %j',
    async (header) => {
      const answer = await edge.call('/things/one', { headers: { authorization: header } });
      expect(answer.status).toBe(401);
      expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/);
      expect(await answer.json()).toMatchObject({ detail: 'Not authenticated', code: 'not_authenticated' });
    },
  );

  test('precedes any other check of the request', async () => {
    const answer = await fetch(`${edge.url}/things/a%2fb?size=x`, {
      method: 'PATCH',
      body: '{',
      headers: { 'content-type': 'application/json' },
    });
    expect(answer.status).toBe(401);
  });

  test('answers 403 to a key that lacks the scope', async () => {
    const answer = await patch('{}', { authorization: edge.keys.reader });
    expect(answer.status).toBe(403);
    expect(await answer.json()).toMatchObject({
      detail: expect.stringContaining('write'),
      code: 'missing_scope',
    });
  });
});

describe('missing resources', () => {
  test('missing, foreign and impossible are the same bytes', async () => {
    const foreign = { headers: { authorization: edge.keys.second } };
    const answers = await Promise.all([
      edge.call('/things/two'),
      edge.call('/things/one', foreign),
      ...['a%2fb', 'a%00b', 'a%0d%0ab', '%zz', '%ff', 'a'.repeat(65), 'a'.repeat(2000), '..%2f..', '%20'].map((id) =>
        edge.call(`/things/${id}`),
      ),
      edge.call('/no/such/route'),
    ]);
    const seen = await Promise.all(
      answers.map(async (answer) => `${answer.status} ${answer.headers.get('content-type')} ${await answer.text()}`),
    );
    expect(new Set(seen)).toEqual(
      new Set(['404 application/json; charset=utf-8 {"detail":"Not Found","code":"not_found"}']),
    );
  });

  test('a method that a path does not support is 405 with Allow', async () => {
    const answer = await edge.call('/things/one', { method: 'DELETE' });
    expect(answer.status).toBe(405);
    expect(answer.headers.get('allow')).toBe('GET, HEAD, PATCH');
  });

  test('HEAD answers as GET does, without the body', async () => {
    const answer = await edge.call('/things/one', { method: 'HEAD' });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-length')).toBe('25');
    expect(await answer.text()).toBe('');
    expect((await edge.call('/things/two', { method: 'HEAD' })).status).toBe(404);
  });
});

describe('bodies', () => {
  test('only JSON is accepted: 415', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'junk']) {
      const answer = await patch('{}', { 'content-type': type });
      expect(answer.status).toBe(415);
      expect(await answer.json()).toMatchObject({ detail: expect.any(String), code: 'unsupported_media_type' });
    }
  });

  test('256 KiB are accepted, one byte more is 413, also without a content length', async () => {
    const filled = (bytes: number) => `{"x":"${'x'.repeat(bytes - 8)}"}`;
    expect((await patch(filled(256 * 1024))).status).toBe(200);
    expect((await patch(filled(256 * 1024 + 1))).status).toBe(413);
    const chunked = await edge.call('/things/one', {
      method: 'PATCH',
      body: new Blob([filled(256 * 1024 + 1)]).stream(),
      headers: { 'content-type': 'application/json' },
      duplex: 'half',
    });
    expect(chunked.status).toBe(413);
  });

  test.each([
    ['malformed', '{"name": }', 'json_invalid'],
    ['nested 20,000 deep', `{"meta_data":${'['.repeat(20_000)}${']'.repeat(20_000)}}`, 'json_invalid'],
    ['no object', '[1]', 'model_attributes_type'],
    ['absent', '', 'missing'],
    ['of a wrong type', '{"name": 12}', 'string_type'],
    ['too long', `{"name": "${'x'.repeat(11)}"}`, 'string_too_long'],
    ['half a surrogate pair', '{"name": "\\ud800"}', 'string_unicode'],
    ['reaching for the prototype', '{"meta_data": {"__proto__": {"admin": true}}}', 'extra_forbidden'],
    ['a map with too many levels', `{"meta_data": ${'{"a":'.repeat(33)}1${'}'.repeat(33)}}`, 'value_error'],
    ['a map with an infinite number', '{"meta_data": {"a": 1e999}}', 'finite_number'],
  ])('%s is 422', async (_what, body, type) => {
    const answer = await patch(body);
    expect(answer.status).toBe(422);
    expect(await answer.json()).toMatchObject({
      detail: [{ type, loc: expect.arrayContaining(['body']), msg: expect.any(String) }],
    });
  });

  test('a body that is refused is not echoed whole', async () => {
    const answer = await patch(JSON.stringify({ name: 'x'.repeat(100_000), meta_data: 1 }));
    expect(answer.status).toBe(422);
    expect((await answer.text()).length).toBeLessThan(1000);
  });

  test('unknown members are ignored, and nothing reaches the prototype of objects', async () => {
    const answer = await patch('{"unknown": 1, "name": "a"}');
    expect(await answer.json()).toMatchObject({ id: 'one', name: 'a' });
    expect({}).not.toHaveProperty('admin');
  });
});

describe('query strings', () => {
  test.each([
    ['size=0', 'greater_than_equal'],
    ['size=101', 'less_than_equal'],
    ['size=5abc', 'int_parsing'],
    ['size=1e1', 'int_parsing'],
    ['size=%205', 'int_parsing'],
    ['size=', 'int_parsing'],
    ['size=5&size=5', 'int_type'],
    ['page=0', 'greater_than_equal'],
    ['page=99999999999999999999', 'less_than_equal'],
    ['old=maybe', 'bool_parsing'],
    ['kind=a&kind=b', 'string_type'],
    ['cursor=made-up', 'value_error'],
  ])('?%s is 422 %s', async (query, type) => {
    const answer = await edge.call(`/things?${query}`);
    expect(answer.status).toBe(422);
    expect(await answer.json()).toMatchObject({ detail: [{ type, loc: ['query', query.split('=')[0]] }] });
  });
});

describe('failures', () => {
  test('an unavailable store is 503 with Retry-After, and does not reveal its address', async () => {
    const answer = await edge.call('/failures', { method: 'POST', body: '{"how":"fault"}' });
    expect(answer.status).toBe(503);
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    const body = await answer.text();
    expect(JSON.parse(body)).toMatchObject({ code: 'store_unavailable', detail: expect.any(String) });
    expect(body).not.toContain('10.0.0.1');
  });

  test('a bug is 500, without details', async () => {
    const answer = await edge.call('/failures', { method: 'POST', body: '{"how":"bug"}' });
    expect(answer.status).toBe(500);
    expect(await answer.json()).toEqual({
      detail: 'Internal Server Error',
      code: 'internal',
      request_id: answer.headers.get('x-request-id'),
    });
  });

  test('bytes that are not HTTP get an answer in JSON, and the connection is closed', async () => {
    const answerTo = async (bytes: string): Promise<string> => {
      const socket = connect(Number(new URL(edge.url).port), '127.0.0.1');
      await once(socket, 'connect');
      socket.write(bytes);
      return readAll(socket);
    };
    expect(await answerTo('junk\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 .*"detail":/s);
    expect(await answerTo(`GET / HTTP/1.1\r\nhost: a\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 431 .*"detail":/s,
    );
  });
});

describe('request ids and traces', () => {
  test('a well-formed x-request-id is kept, anything else replaced', async () => {
    const named = async (given: string) =>
      (await edge.call('/things/one', { headers: { 'x-request-id': given } })).headers.get('x-request-id');
    expect(await named('abc-123')).toBe('abc-123');
    for (const junk of ['a b', 'a"b', 'x'.repeat(129)]) expect(await named(junk)).toMatch(/^[\w-]+-[0-9a-z]+$/);
    expect(await named('')).not.toBe(await named(''));
  });

  test('a trace is continued: same trace, a span of its own', async () => {
    const given = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const answer = await patch('{}', { traceparent: given });
    const ours = answer.headers.get('traceparent');
    expect(ours).toMatch(/^00-4bf92f3577b34da6a3ce929d0e0e4736-[0-9a-f]{16}-01$/);
    expect(ours).not.toBe(given);
    expect(await answer.json()).toMatchObject({ traceparent: ours });
  });

  test('a malformed trace is not continued', async () => {
    for (const junk of [
      'junk',
      `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
      'ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    ]) {
      const answer = await patch('{}', { traceparent: junk });
      const ours = answer.headers.get('traceparent');
      expect(ours).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
      expect(ours).not.toContain('4bf92f3577b34da6a3ce929d0e0e4736');
    }
  });
});
