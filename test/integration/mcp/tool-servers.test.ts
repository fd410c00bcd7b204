/** Servers of tools, well-behaved and odd, behind the guarded fetcher: what they list and answer. */
import { describe, expect, it } from 'vitest';

import { type Habits, saysText, sendStream } from '#test/support/mcp-server.ts';

import { server, list, call, toolCall, useServerOfTools } from './server-of-tools.ts';

useServerOfTools();

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
