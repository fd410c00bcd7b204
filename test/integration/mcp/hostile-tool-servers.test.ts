/** Hostile servers of tools, behind the guarded fetcher. */
import { describe, expect, it } from 'vitest';

import { createFetcher } from '#libs/platform/fetch/index.ts';
import { toolServers } from '#libs/platform/mcp/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { type Habits, listing, type McpTestServer, saysText } from '#test/support/mcp-server.ts';

import { server, fetcher, never, access, list, call, useServerOfTools } from './server-of-tools.ts';

useServerOfTools();

describe('a hostile server', () => {
  const sends =
    (status: number, type: string, body: string): McpTestServer['instead'] =>
    (response) =>
      response.writeHead(status, { 'content-type': type }).end(body);

  it.each([
    [
      'answers with what is no JSON',
      sends(200, 'application/json', '{"jsonrpc": "2.'),
      'gave an answer that is not valid',
    ],
    [
      'answers with what is no JSON-RPC',
      sends(200, 'application/json', '{"a": 1}'),
      'gave an answer that is not valid',
    ],
    [
      'answers with a page',
      sends(200, 'text/html', '<p>hi'),
      'gave an answer that is not valid, of the type: “text/html”',
    ],
    ['refuses', sends(401, 'text/html', '<script>'), 'answered with the status 401; it was given no token'],
    [
      'is limited',
      sends(429, 'application/json', '{"message":"slow\\ndown"}'),
      'answered with the status 429: “slow down”',
    ],
  ])('that %s is named in a sentence of ours', async (_what, instead, message) => {
    server.instead = instead;
    await expect(list()).rejects.toMatchObject({ name: 'ToolServerError', message: `the tool server ${message}` });
  });

  it('that wants authorization is named with what it asks for, without the token', async () => {
    server.instead = (response) => {
      response.writeHead(401, { 'www-authenticate': 'Bearer resource_metadata="https://a.example/x"' });
      response.end('{"error":"invalid_token","error_description":"unknown token abc-123"}');
    };
    await expect(call('find', {}, 'abc-123')).rejects.toThrow(
      'the tool server answered with the status 401 and asks for authorization: “Bearer resource_metadata="https://a.example/x"”; it does not accept the token: “unknown token …”',
    );
  });

  it('that refuses a call by a status was not called', async () => {
    const refusing =
      (status: number): Habits['answer'] =>
      ({ method }, response) => {
        if (method !== 'tools/call') return false;
        response.writeHead(status).end();
        return true;
      };
    server.habits = { answer: refusing(403) };
    await expect(call('pay')).rejects.toMatchObject({ stage: 'open' });
    server.habits = { answer: refusing(500) };
    await expect(call('pay')).rejects.toMatchObject({ stage: 'called' });
  });

  it('cannot send more than the bound', async () => {
    server.tools.set('huge', { run: () => saysText('x'.repeat(10 * 1024 * 1024)) });
    await expect(call('huge')).rejects.toThrow(/has more than 1048576 bytes/);
    expect(server.calls).toHaveLength(1);
  });

  it('cannot redirect requests, not even to an address that is allowed', async () => {
    const urls: unknown[] = [];
    server.instead = (response, { url }) => {
      urls.push(url);
      response.writeHead(307, { location: `${server.url}/elsewhere` }).end();
    };
    await expect(list()).rejects.toThrow(
      `the tool server redirects requests, which is not followed: “${server.url}/elsewhere”`,
    );
    expect(urls).toEqual(['/mcp']);
  });

  it('at a private address gets nothing, unless it is allowed', async () => {
    const strict = createFetcher({ metrics: createMetrics({ processMetrics: false }) });
    await expect(toolServers(strict).list(access(), never)).rejects.toMatchObject({ name: 'ToolServerError' });
    expect(server.headers).toEqual([]);
    await strict.close();
  });

  it('that never answers costs the time limit, and ends when the caller gives up', async () => {
    server.instead = () => undefined;
    const short = toolServers(fetcher, { timeoutMs: 300, maxBytes: 1024 });
    await expect(short.list(access(), never)).rejects.toThrow(/did not answer in time/);
    const abort = new AbortController();
    server.instead = () => abort.abort(new Error('the run was cancelled'));
    const patient = toolServers(fetcher, { timeoutMs: 3_600_000, maxBytes: 1024 });
    await expect(patient.list(access(), abort.signal)).rejects.toThrow('the run was cancelled');
  });

  it('that is slow with each page has the time limit for all of them', async () => {
    let pages = 0;
    server.habits = {
      answer({ id, method }, response) {
        if (method !== 'tools/list') return false;
        pages += 1;
        const text = JSON.stringify({ jsonrpc: '2.0', id, result: { tools: [], nextCursor: `page ${pages}` } });
        setTimeout(() => response.setHeader('content-type', 'application/json').end(text), 100);
        return true;
      },
    };
    const short = toolServers(fetcher, { timeoutMs: 300, maxBytes: 1024 });
    await expect(short.list(access(), never)).rejects.toThrow(/did not answer in time/);
  });

  it('may nest a schema as deeply as it likes', async () => {
    const deep = `{"type":"object","deep":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
    server.habits = { answer: listing(`{"tools":[{"name":"deep","inputSchema":${deep}},{"name":"find"}]}`) };
    expect((await list()).tools.map(({ name }) => name)).toEqual(['deep', 'find']);
  });
});
