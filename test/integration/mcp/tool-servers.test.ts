/** Servers of tools, well-behaved, odd and hostile, behind the guarded fetcher. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { createFetcher, type Fetcher } from '#libs/platform/fetch/index.ts';
import { toolServers, type ToolServers } from '#libs/platform/mcp/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import {
  type Habits,
  listing,
  type McpTestServer,
  resetMcpServer,
  saysText,
  sendStream,
  startMcpServer,
} from '#test/support/mcp-server.ts';

let server: McpTestServer;
let fetcher: Fetcher;
let servers: ToolServers;

const never = new AbortController().signal;
const limits = { timeoutMs: 30_000, maxBytes: 1024 * 1024 };

beforeAll(async () => {
  server = await startMcpServer();
  const metrics = createMetrics({ processMetrics: false });
  fetcher = createFetcher({ metrics, allowHosts: [{ host: '127.0.0.1', port: server.port }] });
});
beforeEach(() => {
  resetMcpServer(server);
  // Without what it remembers of the server.
  servers = toolServers(fetcher, limits);
});
afterAll(async () => {
  await fetcher.close();
  await server.stop();
});

const access = () => ({ url: server.url, token: null });
const list = () => servers.list(access(), never);
const schema = { type: 'object' };
const call = (name: string, input = {}, token: string | null = null) =>
  servers.call({ ...access(), token }, { name, input, schema }, never);
const toolCall = (params: Habits['result']): void => {
  server.habits = {
    ...server.habits,
    result: (message) => (message.method === 'tools/call' ? params?.(message) : undefined),
  };
};

describe('a server of tools', () => {
  it('lists them with their schemas, and what may be repeated', async () => {
    const inputSchema = { type: 'object' as const, properties: { id: { type: 'string' } }, required: ['id'] };
    server.tools.set('find', { description: 'Finds orders.', inputSchema, annotations: { readOnlyHint: true } });
    server.tools.set('cancel', { annotations: { idempotentHint: true } });
    server.tools.set('pay', { annotations: { destructiveHint: true } });
    expect(await list()).toEqual({
      tools: [
        { name: 'find', description: 'Finds orders.', input: inputSchema, isRepeatable: true },
        { name: 'cancel', description: '', input: { type: 'object' }, isRepeatable: true },
        { name: 'pay', description: '', input: { type: 'object' }, isRepeatable: false },
      ],
      leftOut: [],
    });
  });

  it('gets calls with the token, and its texts are the result', async () => {
    server.tools.set('find', { run: ({ id }) => saysText(`Order ${String(id)}`) });
    expect(await call('find', { id: '7' }, 'abc')).toEqual({ isError: false, text: 'Order 7' });
    expect(server.calls).toEqual([{ name: 'find', input: { id: '7' } }]);
    expect(new Set(server.headers.map(({ authorization }) => authorization))).toEqual(new Set(['Bearer abc']));
  });

  it('may say that a call has failed, in a result or in a JSON-RPC error', async () => {
    server.tools.set('fail', { run: () => ({ ...saysText('no such order'), isError: true }) });
    expect(await call('fail')).toEqual({ isError: true, text: 'no such order' });
    server.habits = {
      answer({ id, method }, response) {
        if (method !== 'tools/call') return false;
        const error = { code: -32_602, message: 'amount must be a number', data: null };
        response.end(JSON.stringify({ jsonrpc: '2.0', id, error, result: null }));
        return true;
      },
    };
    expect(await call('fail')).toEqual({
      isError: true,
      text: 'the tool server refused the request with the code -32602: “amount must be a number”',
    });
  });

  it('is not believed about the form of its results', async () => {
    const outputSchema = { type: 'object' as const, properties: { a: { type: 'string', pattern: '(a+)+$(' } } };
    server.tools.set('costly', { outputSchema, run: () => ({ content: [], structuredContent: { a: 'aaaa!' } }) });
    expect((await list()).tools.map(({ name }) => name)).toEqual(['costly']);
    expect(await call('costly')).toMatchObject({ text: '{"a":"aaaa!"}' });
  });
});

describe('a list of tools', () => {
  it('is read without the tools that cannot be used, which are named', async () => {
    const tools = [
      { name: 'empty', inputSchema: {} },
      { name: 'missing', description: null, annotations: 'none', title: 'Without a schema' },
      { name: 'nulls', description: null, inputSchema: null, outputSchema: null, annotations: null, _meta: null },
      { name: 'odd', description: 7, inputSchema: { type: ['object', 'null'] }, annotations: { readOnlyHint: 'yes' } },
      { name: 'text', inputSchema: { type: 'string' } },
      { name: 'array', inputSchema: [] },
      { name: 'task', inputSchema: { type: 'object' }, execution: { taskSupport: 'required' } },
      { name: 'n'.repeat(300) },
      { name: 5 },
      'find',
      null,
      { name: 'find', inputSchema: { type: 'object', properties: { id: { type: 'string' } } }, icons: [{}] },
    ];
    server.habits = {
      result: ({ method }) =>
        method === 'tools/list' ? { tools, nextCursor: null, _meta: null, ttlMs: 'soon' } : undefined,
    };
    const found = await list();
    expect(found.tools.map(({ name, description, input }) => [name, description, input.type])).toEqual([
      ['empty', '', 'object'],
      ['missing', 'Without a schema', 'object'],
      ['nulls', '', 'object'],
      ['odd', '', 'object'],
      ['find', '', 'object'],
    ]);
    expect(found.leftOut).toEqual([
      { name: 'text', reason: 'its input schema is not that of an object' },
      { name: 'array', reason: 'its input schema is not that of an object' },
      { name: 'task', reason: 'it can only be called as a task, which is not supported' },
      { name: 'n'.repeat(256), reason: 'its name is too long or not valid text' },
      ...Array.from({ length: 3 }, () => ({ name: null, reason: 'it has no name' })),
    ]);
  });

  it('is well-formed text, whatever the server writes', async () => {
    const tools = [{ name: 'find', description: 'half \ud83d an\u0000 \u202eorder' }, { name: 'half\ud83d' }];
    server.habits = { result: ({ method }) => (method === 'tools/list' ? { tools } : undefined) };
    expect(await list()).toMatchObject({
      tools: [{ name: 'find', description: 'half \ufffd an\u0000 \u202eorder' }],
      leftOut: [{ name: 'half\ufffd', reason: 'its name is too long or not valid text' }],
    });
  });

  const pages =
    (next: (page: number) => unknown): Habits['result'] =>
    ({ method, params }) => {
      if (method !== 'tools/list') return undefined;
      const page = Number(params.cursor ?? 0);
      return {
        tools: Array.from({ length: 60 }, (_, index) => ({ name: `t${page * 60 + index}` })),
        nextCursor: next(page),
      };
    };

  it('is read with all its pages', async () => {
    server.habits = { result: pages((page) => (page < 9 ? String(page + 1) : '')) };
    const found = await list();
    expect([found.tools.length, found.leftOut]).toEqual([600, []]);
  });

  it('ends where pages repeat, and at a number of tools, of which it says so', async () => {
    server.habits = { result: pages((page) => String(page % 2)) };
    expect((await list()).tools).toHaveLength(120);
    server.habits = { result: pages((page) => String(page + 1)) };
    expect((await list()).tools).toHaveLength(1_000);
    expect((await list()).leftOut).toEqual([
      { name: null, reason: 'only the first 1000 tools of the server were read' },
    ]);
  });

  it('keeps the pages before one that cannot be read', async () => {
    server.habits = {
      result: (message) =>
        message.params?.cursor === '1' ? { tools: 'none' } : pages((page) => String(page + 1))?.(message),
    };
    const found = await list();
    expect([found.tools.length, found.leftOut]).toEqual([
      60,
      [{ name: null, reason: 'a page of the tools could not be read' }],
    ]);
  });
});

describe('the result of a call', () => {
  it('has the texts and names of everything in it, also of what is unknown or malformed', async () => {
    toolCall(() => ({
      content: [
        { type: 'text', text: 'Order 7', annotations: null },
        { type: 'image', data: 'AAAA', mimeType: 'image/png' },
        { type: 'audio', data: 'AAAAAAAA', mimeType: 'audio/wav' },
        {
          type: 'resource',
          resource: { uri: 'file:///order.txt', mimeType: 'text/plain', text: 'Shipped on Monday.' },
        },
        { type: 'resource', resource: { uri: 'file:///order.pdf', blob: 'AAAA' } },
        { type: 'resource_link', uri: 'https://example.org/7', name: 'order', description: 'The order' },
        { type: 'hologram', data: 1 },
        { type: 'text', text: 5 },
        { type: 'resource' },
        null,
        { type: 'text', text: 'half a \ud83d character' },
      ],
      structuredContent: { total: 3 },
      isError: null,
      _meta: null,
    }));
    const { isError, text } = await call('find');
    expect([isError, ...text.split('\n')]).toEqual([
      false,
      'Order 7',
      '[image, image/png, 3 bytes]',
      '[audio, audio/wav, 6 bytes]',
      '[resource, file:///order.txt, text/plain]',
      'Shipped on Monday.',
      '[resource, file:///order.pdf, 3 bytes]',
      '[link: order, https://example.org/7, The order]',
      '[an item of the type "hologram"]',
      '[text that is not valid]',
      '[a resource that is not valid]',
      '[an item that is not valid]',
      'half a \ufffd character',
      '{"total":3}',
    ]);
  });

  it.each([
    [
      'structured content that a text repeats',
      { content: [{ type: 'text', text: '{"a": [1]}' }], structuredContent: { a: [1] } },
      '{"a": [1]}',
    ],
    ['structured content alone', { structuredContent: [1, 2] }, '[1,2]'],
    ['no items', { content: [] }, ''],
    ['one item that is in no list', { content: { type: 'text', text: 'found' } }, 'found'],
    ['a text as content', { content: 'found' }, 'found'],
    ['the form of 2024', { toolResult: { found: true } }, '{"found":true}'],
  ])('may have %s', async (_what, result, text) => {
    toolCall(() => result);
    expect(await call('find')).toEqual({ isError: false, text });
  });
});

describe('messages beside an answer', () => {
  const before = [
    ': a comment\n\n',
    { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'working' } },
    { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 99, progress: 1 } },
    { jsonrpc: '2.0', method: 'notifications/progress', params: null },
    { jsonrpc: '2.0', method: 'notifications/tools/list_changed' },
    { jsonrpc: '2.0', method: 'vendor/hello', params: [1] },
    { jsonrpc: '2.0', id: 77, result: {} },
    { jsonrpc: '2.0', id: 's1', method: 'ping' },
    { jsonrpc: '2.0', id: 's2', method: 'sampling/createMessage', params: {} },
    { hello: 'world' },
    'data: no JSON\n\n',
    'event: ping\ndata: {}\n\n',
    'data:\n\n',
  ];

  it('never cost the result of a call that was made', async () => {
    server.tools.set('order', { run: () => saysText('ordered') });
    server.habits = { streams: true, before };
    expect(await call('order')).toEqual({ isError: false, text: 'ordered' });
    expect(server.calls).toHaveLength(1);
  });

  it('may also be in a list with it, and its id may be a text', async () => {
    const result = saysText('ordered');
    server.habits = {
      answer({ id, method }, response) {
        if (method !== 'tools/call') return false;
        response.setHeader('content-type', 'application/json; charset=utf-8');
        const messages = [
          ...before.filter((one) => typeof one === 'object'),
          { jsonrpc: '2.0', id: String(id), result, error: null },
        ];
        response.end(JSON.stringify(messages));
        return true;
      },
    };
    expect(await call('order')).toEqual({ isError: false, text: 'ordered' });
  });

  it('leave the result of a stream that stays open', async () => {
    server.habits = {
      answer({ id, method }, response) {
        if (method !== 'tools/call') return false;
        sendStream(response, { jsonrpc: '2.0', id, result: saysText('ordered') });
        return true;
      },
    };
    expect(await call('order')).toEqual({ isError: false, text: 'ordered' });
  });
});

describe('a stream that breaks off', () => {
  const breaking =
    (...sent: readonly (object | string)[]): Habits['answer'] =>
    ({ id, method }, response) => {
      if (method !== 'tools/call') return false;
      sendStream(response, ...sent, ...(sent.length === 0 ? [] : [{ id, jsonrpc: '2.0', method: 'notifications/x' }]));
      response.end();
      return true;
    };

  it('before the result is named, and the call is not known', async () => {
    server.habits = { answer: breaking() };
    await expect(call('order')).rejects.toMatchObject({
      message: 'the tool server ended its answer before the result',
      stage: 'called',
    });
  });

  it('is resumed where its events have ids', async () => {
    const ids: unknown[] = [];
    server.habits = {
      answer(message, response, request) {
        if (message.method !== 'GET') return breaking('retry: 10\nid: e1\ndata:\n\n')!(message, response, request);
        ids.push(request.headers['last-event-id']);
        const id = ids.length + 1;
        sendStream(
          response,
          ids.length === 1 ? `id: e${id}\ndata:\n\n` : { jsonrpc: '2.0', id: 1, result: saysText('at last') },
        );
        response.end();
        return true;
      },
    };
    expect(await call('order')).toEqual({ isError: false, text: 'at last' });
    expect(ids).toEqual(['e1', 'e2']);
  });

  it('is given up where the server does not resume it', async () => {
    server.habits = { answer: breaking('id: e1\ndata:\n\n') };
    await expect(call('order')).rejects.toMatchObject({ stage: 'called' });
    expect(server.received.filter((one) => one === 'GET')).toHaveLength(1);
  });
});

describe('a session', () => {
  it.each([true, false])(
    'has its id in all requests, is ended, and begins again where it is lost (streams: %s)',
    async (streams) => {
      let session = 's1';
      server.tools.set('find', { run: () => saysText('found') });
      server.habits = { streams, session: () => session };
      expect(await call('find')).toEqual({ isError: false, text: 'found' });
      expect(server.received).toEqual(['initialize', 'notifications/initialized', 'tools/call', 'DELETE']);
      expect(server.headers.map((headers) => headers['mcp-session-id'])).toEqual([undefined, 's1', 's1', 's1']);
      expect(new Set(server.headers.slice(1).map((headers) => headers['mcp-protocol-version']))).toEqual(
        new Set([expect.stringMatching(/^\d{4}-/)]),
      );
      server.received.length = 0;
      server.habits = {
        ...server.habits,
        answer({ method }) {
          if (method === 'tools/call' && session === 's1') session = 's2';
          return false;
        },
      };
      expect(await call('find')).toEqual({ isError: false, text: 'found' });
      expect(server.received.filter((one) => one === 'tools/call')).toHaveLength(2);
      expect(server.calls).toHaveLength(2);
    },
  );

  it('needs no answer to notifications', async () => {
    server.tools.set('find', {});
    server.habits = {
      answer({ method }, response) {
        if (method !== 'notifications/initialized') return false;
        response.writeHead(400).end('what?');
        return true;
      },
    };
    expect((await list()).tools).toHaveLength(1);
  });

  it('may have another version, which is named if it is not supported', async () => {
    server.tools.set('find', {});
    let protocolVersion = '2024-11-05';
    server.habits = { result: ({ method }) => (method === 'initialize' ? { protocolVersion } : undefined) };
    expect((await list()).tools).toHaveLength(1);
    protocolVersion = '1999-01-01';
    await expect(list()).rejects.toThrow(
      'the tool server speaks a version of the protocol that is not supported: “1999-01-01”',
    );
  });
});

describe('a server of another era', () => {
  it('of 2026 has no sessions', async () => {
    const complete = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };
    const answer: Habits['answer'] = ({ id, method, params }, response) => {
      const send = (status: number, body: object) => {
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ jsonrpc: '2.0', id, ...body }));
        return true;
      };
      switch (method) {
        case 'server/discover':
          return send(200, { result: { ...complete, supportedVersions: ['2026-07-28'], capabilities: { tools: {} } } });
        case 'tools/list':
          return send(200, { result: { ...complete, tools: [{ name: 'broken', inputSchema: 5 }, { name: 'find' }] } });
        case 'tools/call':
          if (params.name === 'ask') {
            const a = { method: 'elicitation/create', params: { message: 'Who?', requestedSchema: {} } };
            return send(200, { result: { resultType: 'input_required', inputRequests: { a } } });
          }
          if (params.name === 'later' && params.requestState !== 's1') {
            return send(200, { result: { resultType: 'input_required', requestState: 's1' } });
          }
          return send(200, { result: { ...complete, content: [{ type: 'hologram' }] } });
        default:
          return send(400, { error: { code: -32_022, message: 'Unsupported', data: { supported: ['2026-07-28'] } } });
      }
    };
    server.habits = { answer };
    expect(await list()).toMatchObject({ tools: [{ name: 'find' }], leftOut: [{ name: 'broken' }] });
    expect(await call('find')).toEqual({ isError: false, text: '[an item of the type "hologram"]' });
    expect(await call('ask')).toEqual({
      isError: true,
      text: 'the tool server asks for the input of a user, which is not supported',
    });
    expect(await call('later')).toEqual({ isError: false, text: '[an item of the type "hologram"]' });
    // The era is remembered.
    expect(server.received.filter((one) => one === 'initialize')).toHaveLength(1);
  });

  it('of 2024 sends all answers over one stream', async () => {
    let stream: Parameters<NonNullable<Habits['answer']>>[1] | undefined;
    server.tools.set('find', { run: () => saysText('found') });
    server.habits = {
      answer({ id, method, params }, response, request) {
        if (method === 'GET') {
          stream = sendStream(response, 'event: endpoint\ndata: /messages?session=1\n\n');
          return true;
        }
        if (request.url === '/mcp') {
          response.writeHead(405).end();
          return true;
        }
        response.writeHead(202).end('Accepted');
        const results: Record<string, unknown> = {
          initialize: {
            protocolVersion: '2024-11-05',
            capabilities: { tools: {} },
            serverInfo: { name: 'a', version: '1' },
          },
          'tools/list': { tools: [{ name: 'find' }] },
          'tools/call': saysText(`found ${params?.name}`),
        };
        if (id !== undefined) sendStream(stream!, 'data: {}\n\n', { jsonrpc: '2.0', id, result: results[method] });
        return true;
      },
    };
    expect((await list()).tools).toMatchObject([{ name: 'find' }]);
    expect(await call('find')).toEqual({ isError: false, text: 'found find' });
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
