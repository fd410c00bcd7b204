/** Servers of tools, well-behaved and hostile, behind the guarded fetcher. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { createFetcher } from '#libs/platform/fetch/index.ts';
import type { Fetcher } from '#libs/platform/fetch/index.ts';
import { toolServers } from '#libs/platform/mcp/index.ts';
import type { ToolServers } from '#libs/platform/mcp/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { listing, saysText, startMcpServer } from '#test/support/mcp-server.ts';
import type { McpTestServer } from '#test/support/mcp-server.ts';

let server: McpTestServer;
let fetcher: Fetcher;
let servers: ToolServers;

const never = new AbortController().signal;

beforeAll(async () => {
  server = await startMcpServer();
  const metrics = createMetrics({ processMetrics: false });
  fetcher = createFetcher({ metrics, allowHosts: [{ host: '127.0.0.1', port: server.port }] });
  servers = toolServers(fetcher, { timeoutMs: 30_000, maxBytes: 1024 * 1024 });
});
beforeEach(() => {
  server.instead = null;
  server.tools.clear();
  server.calls.length = 0;
  server.headers.length = 0;
});
afterAll(async () => {
  await fetcher.close();
  await server.stop();
});

const access = () => ({ url: server.url, token: null });
const list = () => servers.list(access(), never);
const call = (name: string, input = {}) => servers.call(access(), { name, input }, never);

describe('a server of tools', () => {
  it('lists them with their schemas, and what may be repeated', async () => {
    const inputSchema = { type: 'object' as const, properties: { id: { type: 'string' } }, required: ['id'] };
    server.tools.set('find', { description: 'Finds orders.', inputSchema, annotations: { readOnlyHint: true } });
    server.tools.set('cancel', { annotations: { idempotentHint: true } });
    server.tools.set('pay', { annotations: { destructiveHint: true } });
    expect(await list()).toEqual([
      { name: 'find', description: 'Finds orders.', input: inputSchema, isRepeatable: true },
      { name: 'cancel', description: '', input: { type: 'object' }, isRepeatable: true },
      { name: 'pay', description: '', input: { type: 'object' }, isRepeatable: false },
    ]);
  });

  it('gets calls with the token, and its text is the result', async () => {
    server.tools.set('find', {
      run: ({ id }) => ({
        content: [
          { type: 'text', text: `Order ${String(id)}` },
          { type: 'image', data: 'AAAA', mimeType: 'image/png' },
        ],
      }),
    });
    const found = await servers.call({ ...access(), token: 'abc' }, { name: 'find', input: { id: '7' } }, never);
    expect(found).toEqual({ isError: false, text: 'Order 7\n[image]' });
    expect(server.calls).toEqual([{ name: 'find', input: { id: '7' } }]);
    expect(new Set(server.headers.map(({ authorization }) => authorization))).toEqual(new Set(['Bearer abc']));
  });

  it('may say that a call has failed, or answer with data alone', async () => {
    server.tools.set('fail', { run: () => ({ ...saysText('no such order'), isError: true }) });
    server.tools.set('data', { run: () => ({ content: [], structuredContent: { total: 3 } }) });
    expect(await call('fail')).toEqual({ isError: true, text: 'no such order' });
    expect(await call('data')).toEqual({ isError: false, text: '{"total":3}' });
  });

  it('is not believed about the form of its results', async () => {
    const outputSchema = { type: 'object' as const, properties: { a: { type: 'string', pattern: '(a+)+$(' } } };
    server.tools.set('costly', { outputSchema, run: () => ({ content: [], structuredContent: { a: 'aaaa!' } }) });
    expect((await list()).map(({ name }) => name)).toEqual(['costly']);
    expect(await call('costly')).toMatchObject({ text: '{"a":"aaaa!"}' });
  });
});

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
    ['answers with a page', sends(200, 'text/html', '<p>hi'), 'gave an answer that is not valid'],
    ['refuses', sends(401, 'text/html', '<script>'), 'answered with the status 401'],
  ])('that %s is named in a sentence of ours', async (_what, instead, message) => {
    server.instead = instead;
    await expect(list()).rejects.toMatchObject({ name: 'ToolServerError', message: `the tool server ${message}` });
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
    await expect(list()).rejects.toMatchObject({ name: 'ToolServerError' });
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
    server.instead = listing('{"tools":[],"nextCursor":"more"}', 100);
    const short = toolServers(fetcher, { timeoutMs: 300, maxBytes: 1024 });
    await expect(short.list(access(), never)).rejects.toThrow(/did not answer in time/);
  });
});
