/** Requests for which the fuzzer found undocumented answers. */
import { type IncomingMessage, request } from 'node:http';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Edge, startEdge } from './edge.ts';

let edge: Edge;
beforeAll(async () => {
  edge = await startEdge();
});
afterAll(() => edge.server.close());

async function send(method: string, path: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
  const call = request(edge.url + path, { method, headers: { authorization: edge.keys.first, ...headers } });
  call.end();
  const [answer] = await once(call, 'response');
  answer.resume();
  return answer;
}

describe('a QUERY', () => {
  it.each([{}, { 'content-type': 'application/json' }])('is 405 where the path exists, headers %j', async (headers) => {
    const answer = await send('QUERY', '/things/one', headers);
    expect(answer.statusCode).toBe(405);
    expect(answer.headers.allow).toContain('PATCH');
  });

  it('is 404 for an unknown path', async () => {
    expect((await send('QUERY', '/nothing')).statusCode).toBe(404);
  });
});

describe('a header section that is too large', () => {
  it('is 431, which the OpenAPI document names', async () => {
    expect((await send('GET', `/things/one?cursor=${'x'.repeat(20_000)}`)).statusCode).toBe(431);
    const document: unknown = await (await fetch(`${edge.url}/openapi.json`)).json();
    expect(document).toHaveProperty(['paths', '/things/{id}', 'get', 'responses', '431']);
  });
});
