/** What must work through a proxy. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';

import { Upload } from 'tus-js-client';
import { WebSocket } from 'ws';

import { eventually } from '#test/support/eventually.ts';

export interface ThroughProxy {
  /** The public address, with its prefix. */
  readonly baseUrl: string;
  readonly origin: string;
  readonly key: string;
  /** The client reads while it sends: a proxy written in Go resets connections with unread bytes. */
  readonly readsWhileSending: boolean;
}

const MIB = 1024 * 1024;

async function call({ baseUrl, key }: ThroughProxy, method: string, path: string, body?: object | Buffer) {
  const isFile = Buffer.isBuffer(body);
  const reply = await fetch(`${baseUrl}${path}`, {
    method,
    headers: { authorization: key, 'content-type': isFile ? 'application/octet-stream' : 'application/json' },
    ...(body !== undefined && { body: isFile ? new Uint8Array(body) : JSON.stringify(body) }),
  });
  const text = await reply.text();
  assert.equal(reply.status, 200, text);
  return JSON.parse(text);
}

async function fileOf(through: ThroughProxy, id: string): Promise<Buffer> {
  const item = await eventually(async () => {
    const found = await call(through, 'GET', `/api/v1/media/${id}`);
    assert.match(found.status, /^Ready/);
    return found;
  });
  assert.ok(item.file_url.startsWith(`${through.baseUrl}/api/v1/media/files/`), item.file_url);
  return Buffer.from(await (await fetch(item.file_url)).arrayBuffer());
}

/** Sends a whole body before it reads the reply, as simple clients do. @returns the status */
async function statusAfter(
  { baseUrl, origin, readsWhileSending }: ThroughProxy,
  path: string,
  headers: readonly string[],
): Promise<number> {
  const { port, pathname } = new URL(baseUrl);
  const body = Buffer.alloc(16 * MIB, 0x20);
  const socket = connect({ port: Number(port), host: '127.0.0.1' }).pause();
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.on('error', () => undefined);
  const head = [`POST ${pathname.replace(/\/$/, '')}${path} HTTP/1.1`, `host: ${new URL(origin).host}`, ...headers];
  let text = '';
  const replied = new Promise<void>((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (text.includes('\r\n\r\n')) resolve();
    });
  });
  if (readsWhileSending) socket.resume();
  socket.write([...head, `content-length: ${body.length}`, '', ''].join('\r\n'));
  await Promise.race([closed, new Promise((resolve) => socket.write(body, resolve))]);
  socket.resume();
  await Promise.race([closed, replied]);
  socket.destroy();
  return Number(text.split(' ')[1] ?? 0);
}

const JSON_BODY = 'content-type: application/json';

export const checks: Readonly<Record<string, (through: ThroughProxy) => Promise<void>>> = {
  async 'the document names the public address'(through) {
    const reply = await fetch(`${through.baseUrl}/openapi.json`);
    const { servers } = (await reply.json()) as { servers: object };
    assert.deepEqual(servers, [{ url: through.baseUrl }]);
  },

  async 'the documentation page finds its script and the document'({ baseUrl }) {
    const page = await fetch(`${baseUrl}/docs`);
    assert.equal(page.url, `${baseUrl}/docs/`);
    const [, script = ''] = /src="([^"]+)"/.exec(await page.text()) ?? [];
    for (const address of [script, '../openapi.json']) {
      assert.equal((await fetch(new URL(address, page.url))).status, 200, address);
    }
  },

  async 'a file is uploaded and downloaded'(through) {
    const file = Buffer.alloc(3 * MIB, 'A text. ');
    const { id } = await call(through, 'POST', '/api/v1/media/uploads?name=a.txt', file);
    assert.ok((await fileOf(through, id)).equals(file));
  },

  async 'a resumable upload arrives'(through) {
    const file = Buffer.alloc(5 * MIB, 'Another text. ');
    const url = await new Promise<string>((resolve, reject) => {
      const upload = new Upload(file, {
        endpoint: `${through.baseUrl}/api/v1/media/uploads`,
        headers: { authorization: through.key },
        metadata: { filename: 'b.txt' },
        chunkSize: 2 * MIB,
        onError: reject,
        onSuccess: () => resolve(upload.url ?? ''),
      });
      upload.start();
    });
    assert.ok((await fileOf(through, url.split('/').at(-1) ?? '')).equals(file));
  },

  async 'refusals of bodies arrive'(through) {
    const key = `authorization: ${through.key}`;
    assert.equal(await statusAfter(through, '/api/v1/channels', [JSON_BODY]), 401);
    assert.equal(await statusAfter(through, '/api/v1/channels', [JSON_BODY, key]), 413);
    assert.equal(await statusAfter(through, '/api/v1/channels', ['content-type: text/xml', key]), 415);
    assert.equal(await statusAfter(through, '/api/v1/media/uploads?knowledge_graph=none', [key]), 422);
  },

  async 'a websocket and an event stream bring what is posted'(through) {
    const { id } = await call(through, 'POST', '/api/v1/channels', { name: 'C' });
    const ticket = await call(through, 'POST', `/api/v1/channels/${id}/websocket_ticket`);
    const address = `${through.baseUrl.replace('http', 'ws')}/api/v1/channels/${id}/websocket`;
    const socket = new WebSocket(address, ['parley.v1', `ticket.${ticket.value}`], { origin: through.origin });
    const frames: string[] = [];
    socket.on('message', (data) => frames.push(String(data)));
    await once(socket, 'open');
    socket.send(JSON.stringify({ frame: 'resume', after: 0 }));
    const ending = new AbortController();
    const headers = { authorization: through.key, accept: 'text/event-stream', 'last-event-id': '0' };
    const events = await fetch(`${through.baseUrl}/api/v1/channels/${id}/events`, { headers, signal: ending.signal });
    await call(through, 'POST', `/api/v1/channels/${id}/interactions`, { content: [{ type: 'text', text: 'Hello' }] });
    await eventually(() => assert.match(frames.join('\n'), /interaction\.posted/));
    let text = '';
    for await (const chunk of events.body ?? []) {
      text += Buffer.from(chunk).toString();
      if (text.includes('interaction.posted')) break;
    }
    assert.match(text, /interaction\.posted/);
    ending.abort();
    socket.close();
  },

  async 'metrics are not public'({ baseUrl, origin }) {
    const addresses = new Set([`${baseUrl}/metrics`, `${origin}/metrics`]);
    for (const address of addresses) assert.doesNotMatch(await (await fetch(address)).text(), /parley_/, address);
  },
};
