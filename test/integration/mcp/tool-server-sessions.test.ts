/** Streams that break off, sessions, and servers of other eras, behind the guarded fetcher. */
import { describe, expect, it } from 'vitest';

import { type Habits, saysText, sendStream } from '#test/support/mcp-server.ts';

import { server, list, call, useServerOfTools } from './server-of-tools.ts';

useServerOfTools();

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
