/** Bodies that are refused before they were read: the client gets the reply, however much it still sends. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import { parseConfig } from '#libs/platform/config/index.ts';
import { buildGateway } from '#services/gateway/role.ts';
import { DocumentsApi } from '#test/support/documents-api.ts';
import { roleContext } from '#test/support/role-context.ts';
import { IN_CAMPAIGN } from '#test/support/rounds.ts';

const MIB = 1024 * 1024;
/** More than sockets buffer. */
const BODY = Buffer.alloc(16 * MIB, 0x20);

let api: DocumentsApi;
let port: number;
let key: string;

beforeAll(async () => {
  api = await DocumentsApi.start();
  port = Number(new URL(await api.api.listen()).port);
  key = api.api.rootKey;
});
afterAll(() => api?.stop());

interface Sent {
  readonly status: number;
  readonly body: string;
  /** Whether the socket took all bytes. */
  readonly tookAll: boolean;
}

const JSON_BODY = 'content-type: application/json';
const CHUNKED = 'transfer-encoding: chunked';
const LENGTH = `content-length: ${BODY.length}`;
const keyed = (...headers: string[]): string[] => [`authorization: Bearer ${key}`, ...headers];

/** Sends everything before it reads, as proxies and simple clients do. */
async function send(line: string, headers: readonly string[], { version = '1.1', start = '' } = {}): Promise<Sent> {
  const socket: Socket = connect({ port, host: '127.0.0.1' });
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  let failure: Error | null = null;
  socket.pause().on('error', (error) => (failure = error));
  const write = (bytes: string | Buffer) =>
    Promise.race([closed, new Promise<void>((resolve) => socket.write(bytes, () => resolve()))]);
  await write([`${line} HTTP/${version}`, 'host: parley', ...headers, '', start].join('\r\n'));
  const isChunked = headers.includes(CHUNKED) && start === '';
  if (isChunked) await write(`${BODY.length.toString(16)}\r\n`);
  await write(BODY);
  if (isChunked) await write('\r\n0\r\n\r\n');
  const tookAll = failure === null && !socket.destroyed;
  let text = '';
  const replied = new Promise<void>((resolve) =>
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (/\r\n\r\n[^]*\}$/.test(text)) resolve();
    }),
  );
  socket.resume();
  await Promise.race([replied, closed]);
  socket.destroy();
  return { status: Number(text.split(' ')[1] ?? 0), body: text.split('\r\n\r\n')[1] ?? '', tookAll };
}

describe('a body that is refused', () => {
  const forms: [string, number, string, () => readonly string[]][] = [
    ['without a key', 401, 'POST /api/v1/channels', () => [JSON_BODY, LENGTH]],
    ['without a key, in chunks', 401, 'POST /api/v1/channels', () => [JSON_BODY, CHUNKED]],
    ['of a route that does not exist', 404, 'POST /api/v1/nothing', () => keyed(JSON_BODY, LENGTH)],
    ['of a method that the route does not have', 405, 'PUT /api/v1/channels', () => keyed(JSON_BODY, LENGTH)],
    ['that is too large', 413, 'POST /api/v1/channels', () => keyed(JSON_BODY, LENGTH)],
    ['that becomes too large', 413, 'POST /api/v1/channels', () => keyed(JSON_BODY, CHUNKED)],
    ['of another type', 415, 'POST /api/v1/channels', () => keyed('content-type: text/xml', LENGTH)],
    ['of an invalid query', 422, 'POST /api/v1/media/uploads?knowledge_graph=none', () => keyed(LENGTH)],
    ['of an upload without a key', 401, 'POST /api/v1/media/uploads', () => [LENGTH]],
    [
      'of a document that is too large',
      413,
      'POST /api/v1/documents/uploads',
      () => keyed('content-type: text/plain', LENGTH),
    ],
    [
      'of an upload that is compressed',
      415,
      'POST /api/v1/media/uploads',
      () => keyed('content-encoding: gzip', LENGTH),
    ],
    [
      'of a missing upload',
      404,
      'PATCH /api/v1/media/uploads/00000000-0000-4000-8000-000000000000',
      () => keyed('content-type: application/offset+octet-stream', 'upload-offset: 0', LENGTH),
    ],
  ];

  const plain = { version: '1.1', extra: [] };
  const others = [
    { version: '1.1', extra: ['connection: close'] },
    { version: '1.0', extra: [] },
  ];
  /** A refusal before the route, one by the reader of bodies, and one by a route. */
  const VARIED = new Set(['without a key', 'that becomes too large', 'of a missing upload']);

  it.each(forms)('%s: the reply arrives', async (form, status, line, headers) => {
    for (const { version, extra } of IN_CAMPAIGN || VARIED.has(form) ? [plain, ...others] : [plain]) {
      if (version === '1.0' && headers().includes(CHUNKED)) continue;
      const sent = await send(line, [...headers(), ...extra], { version });
      expect([version, extra, sent.status, sent.tookAll]).toEqual([version, extra, status, true]);
      expect(JSON.parse(sent.body)).toHaveProperty('detail');
    }
  });

  it.each([
    ['has a broken chunk', 400, CHUNKED, '\r\nZZ\r\n'],
    ['follows too large a header section', 431, 'x: '.padEnd(20_000, 'x'), '\r\n'],
    ['follows a header that is not valid', 400, 'no header', '\r\n'],
    ['follows an expectation that is not known', 417, 'expect: miracles', '\r\n'],
  ])('that %s: the reply arrives', async (_form, status, header, start) => {
    const headers = header === CHUNKED ? [header] : [LENGTH, header];
    const sent = await send('POST /api/v1/channels', keyed(...headers), { start });
    expect([sent.status, sent.tookAll]).toEqual([status, true]);
    expect(JSON.parse(sent.body)).toHaveProperty('detail');
  });

  it('ends with its connection when the client leaves', async () => {
    // Without the deadline of the body, which ends the connection at last.
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    try {
      const socket = connect({ port, host: '127.0.0.1' });
      const closed = once(socket, 'close');
      socket.write(['POST /api/v1/channels HTTP/1.1', 'host: parley', LENGTH, '', 'the rest is missing'].join('\r\n'));
      await once(socket, 'data');
      socket.resume().end();
      expect(await closed).toEqual([false]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('that does not end holds up no stop', async () => {
    const config = parseConfig({ PORT: '0' });
    const { server, stop } = await buildGateway(roleContext(api.api.stores.platform, config), config);
    const { port: own } = new URL(await server.listen({ host: '127.0.0.1', port: 0 }));
    // Without the deadlines of the body, and of all connections of a server that stops.
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    try {
      const socket = connect({ port: Number(own), host: '127.0.0.1' });
      socket.on('error', () => undefined);
      socket.write(['POST /api/v1/channels HTTP/1.1', 'host: parley', LENGTH, '', 'the rest is missing'].join('\r\n'));
      const [reply] = await once(socket, 'data');
      expect(String(reply)).toContain('HTTP/1.1 401');
      const stopped = stop();
      await once(server.app.closing, 'abort');
      vi.advanceTimersByTime(2_000);
      await stopped;
    } finally {
      vi.useRealTimers();
    }
  });

  it('is read up to a limit', async () => {
    const socket = connect({ port, host: '127.0.0.1' });
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => undefined).resume();
    socket.write(`POST /api/v1/channels HTTP/1.1\r\nhost: parley\r\ncontent-length: ${400 * MIB}\r\n\r\n`);
    let sentBytes = 0;
    for (const chunk = Buffer.alloc(MIB); sentBytes < 300 * MIB && !socket.destroyed; sentBytes += MIB) {
      await new Promise<void>((resolve) => {
        socket.once('close', resolve);
        socket.write(chunk, () => {
          socket.off('close', resolve);
          resolve();
        });
      });
    }
    await closed;
    expect(sentBytes).toBeLessThan(300 * MIB);
  });
});
