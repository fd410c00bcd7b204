import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as httpRequest,
  type Server,
} from 'node:http';
import { buffer, text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';

import { Upload } from 'tus-js-client';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { parseConfig } from '#libs/platform/config/index.ts';
import { buildGateway } from '#services/gateway/role.ts';
import { DocumentsApi } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';
import { roleContext } from '#test/support/role-context.ts';

const UPLOADS = '/api/v1/media/uploads';
const MIB = 1024 * 1024;
const PART = 'application/offset+octet-stream';

let api: DocumentsApi;
/** Of two gateways. */
let first: string;
let second: string;
let stopSecond: () => Promise<void>;

beforeAll(async () => {
  api = await DocumentsApi.start();
  first = await api.api.listen();
  const other = await api.api.startInstance();
  second = await other.listen();
  stopSecond = () => other.stop();
});
afterAll(async () => {
  await stopSecond?.();
  await api?.stop();
});

interface Options {
  readonly headers?: Record<string, string>;
  readonly body?: Uint8Array;
  readonly key?: string;
}

async function send(method: string, address: string, { headers = {}, body, key = api.api.rootKey }: Options = {}) {
  const init = { method, headers: { authorization: key, ...headers }, ...(body && { body: Buffer.from(body) }) };
  const reply = await fetch(new URL(address, first), init);
  const bytes = await reply.text();
  return { status: reply.status, headers: reply.headers, bytes, json: bytes === '' ? null : JSON.parse(bytes) };
}

async function begin(length: number, query: Record<string, string> = {}, headers: Record<string, string> = {}) {
  const reply = await send('POST', `${UPLOADS}?${new URLSearchParams(query)}`, {
    headers: { 'tus-resumable': '1.0.0', 'upload-length': `${length}`, ...headers },
  });
  expect(reply.status).toBe(201);
  return reply.headers.get('location') ?? '';
}

function append(address: string, offset: number, body: Uint8Array, headers: Record<string, string> = {}) {
  return send('PATCH', address, { headers: { 'content-type': PART, 'upload-offset': `${offset}`, ...headers }, body });
}

/** How much has arrived, without an end of the request that is still sending. */
const arrivedAt = async (address: string) => String((await send('GET', address)).json.offset);
const offsetOf = async (address: string) => (await send('HEAD', address)).headers.get('upload-offset');
const idOf = (address: string) => address.split('/').at(-1) ?? '';

/** The item once it is `Ready`, and its file. */
async function item(id: string) {
  const ready = await eventually(async () => {
    const { json } = await send('GET', `/api/v1/media/${id}`);
    expect(json?.status).toBe('Ready');
    return json;
  });
  const file = await fetch(new URL(new URL(ready.file_url).pathname, first));
  return { ...ready, file: Buffer.from(await file.arrayBuffer()) };
}

/** A request whose body is sent bit by bit. */
function open(method: string, url: string, headers: OutgoingHttpHeaders) {
  const request = httpRequest(url, { method, headers: { authorization: api.api.rootKey, ...headers } });
  const reply = once(request, 'response').then(async ([response]: IncomingMessage[]) => ({
    status: response?.statusCode,
    body: response && (await text(response)),
  }));
  reply.catch(() => undefined);
  request.on('error', () => undefined);
  return { request, reply };
}

const write = (request: ClientRequest, bytes: Uint8Array) =>
  new Promise<void>((resolve) => request.write(bytes, () => resolve()));

it('an upload without a file says so', async () => {
  for (const type of [undefined, 'application/octet-stream', 'image/png']) {
    const headers = type === undefined ? {} : { 'content-type': type };
    const { status, json } = await send('POST', `${UPLOADS}?name=x`, { headers });
    expect([type, status, json.detail[0].loc]).toEqual([type, 422, ['body']]);
    expect(json.detail[0].msg).toContain('the body is the file, and there is none');
  }
});

describe('a resumable upload', () => {
  it('is begun, continued at its offset by any gateway, and becomes the item with its id', async () => {
    const file = randomBytes(3 * MIB);
    const graph = await api.newGraph();
    const channel = (await api.call('POST', '/api/v1/channels', { name: 'Files' })).json.id;
    const metadata = `filename ${Buffer.from('Größe.bin').toString('base64')},filetype YQ==`;
    const query = { description: 'A file', knowledge_graph: graph, channel, message: 'message-1' };
    const address = await begin(file.length, query, { 'upload-metadata': metadata });
    const id = idOf(address);
    expect((await append(address, 0, file.subarray(0, MIB))).status).toBe(204);
    expect((await send('GET', `/api/v1/media/${id}`)).status).toBe(404);

    const state = await send('HEAD', new URL(address, second).href);
    expect(state.status).toBe(200);
    expect(Object.fromEntries(state.headers)).toMatchObject({
      'tus-resumable': '1.0.0',
      'upload-offset': `${MIB}`,
      'upload-length': `${file.length}`,
      'upload-metadata': metadata,
      'cache-control': 'no-store',
    });
    const { json } = await send('GET', address);
    expect(json).toEqual({ id, offset: MIB, length: file.length, expires_at: expect.any(String) });
    expect(Date.parse(state.headers.get('upload-expires') ?? '') / 1_000).toBe(
      Math.floor(Date.parse(json.expires_at) / 1_000),
    );

    const end = await append(new URL(address, second).href, MIB, file.subarray(MIB));
    expect([end.status, end.headers.get('upload-offset')]).toEqual([204, `${file.length}`]);
    const ready = await item(id);
    expect(ready).toMatchObject({ name: 'Größe.bin', description: 'A file', bytes: file.length });
    expect(ready.file.equals(file)).toBe(true);
    const events = await api.events(`media-${id}`);
    expect(events[0]?.data).toMatchObject({ knowledgeGraph: graph, channel, message: 'message-1' });
    // A client that has not received the last reply.
    expect(await offsetOf(address)).toBe(`${file.length}`);
    expect((await append(address, MIB, file.subarray(MIB))).status).toBe(409);
    expect((await api.types(`media-${id}`)).filter((type) => type === 'MediaCreated.v1')).toHaveLength(1);
  });

  it('ends the request that is still sending when a client asks for the offset to continue', async () => {
    const file = randomBytes(10 * MIB);
    const address = await begin(file.length);
    const headers = { 'content-type': PART, 'upload-offset': 0, 'content-length': file.length };
    const { request, reply } = open('PATCH', new URL(address, first).href, headers);
    await write(request, file.subarray(0, 9 * MIB));
    await eventually(async () => expect(await arrivedAt(address)).toBe(`${8 * MIB}`));
    // The connection of the first request is silent, as if its end had been lost.
    const offset = Number(await offsetOf(address));
    expect(offset).toBeGreaterThan(8 * MIB);
    const end = await append(address, offset, file.subarray(offset));
    expect([end.status, (await reply).status]).toEqual([204, 409]);
    request.destroy();
    expect((await item(idOf(address))).file.equals(file)).toBe(true);
  });

  it('keeps what has arrived when the connection ends, and is resumed by a client of tus', async () => {
    const file = randomBytes(20 * MIB);
    const address = await begin(file.length);
    const { request } = open('PATCH', new URL(address, first).href, {
      'content-type': PART,
      'upload-offset': 0,
      'content-length': file.length,
    });
    await write(request, file.subarray(0, 13 * MIB));
    await eventually(async () => expect(await arrivedAt(address)).toBe(`${8 * MIB}`));
    request.destroy();
    // Less than a whole part.
    await eventually(async () => expect(Number(await arrivedAt(address))).toBeGreaterThan(8 * MIB));
    const before = Number(await offsetOf(address));

    const progress: number[] = [];
    await new Promise<void>((resolve, reject) => {
      const upload = new Upload(file, {
        uploadUrl: new URL(address, second).href,
        headers: { authorization: api.api.rootKey },
        chunkSize: 3 * MIB,
        onChunkComplete: (_bytes, offset) => progress.push(offset),
        onSuccess: () => resolve(),
        onError: reject,
      });
      upload.start();
    });
    expect(progress.slice(0, 2)).toEqual([before + 3 * MIB, before + 6 * MIB]);
    expect((await item(idOf(address))).file.equals(file)).toBe(true);
  });

  it('has the offset after what a request has brought that has ended, once that is stored', async () => {
    const file = randomBytes(2 * MIB);
    const address = await begin(file.length);
    const { blobs } = api.api.stores.platform;
    const [ended, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const put = blobs.put.bind(blobs);
    const holding = vi.spyOn(blobs, 'put').mockImplementation(async (...args) => {
      const blob = await put(...args);
      ended.resolve();
      await released.promise;
      return blob;
    });
    const headers = { 'content-type': PART, 'upload-offset': 0, 'content-length': file.length };
    const { request } = open('PATCH', new URL(address, first).href, headers);
    await write(request, file.subarray(0, MIB));
    request.destroy();
    await ended.promise;
    const offset = offsetOf(address);
    await Promise.race([offset, send('GET', UPLOADS)]);
    released.resolve();
    expect(Number(await offset)).toBeGreaterThan(0);
    holding.mockRestore();
    const rest = file.subarray(Number(await offset));
    expect((await append(address, file.length - rest.length, rest)).status).toBe(204);
  });

  it('is created by a client of tus', async () => {
    const file = randomBytes(100_000);
    const url = await new Promise<string>((resolve, reject) => {
      const upload = new Upload(file, {
        endpoint: `${first}${UPLOADS}?description=mine`,
        headers: { authorization: api.api.rootKey },
        metadata: { filename: 'a.bin' },
        onSuccess: () => resolve(upload.url ?? ''),
        onError: reject,
      });
      upload.start();
    });
    const ready = await item(idOf(url));
    expect(ready).toMatchObject({ name: 'a.bin', description: 'mine' });
    expect(ready.file.equals(file)).toBe(true);
  });

  it('ends when its gateway stops, and is continued at another one', async () => {
    const file = randomBytes(9 * MIB);
    const address = await begin(file.length);
    const third = await api.api.startInstance();
    const target = new URL(address, await third.listen()).href;
    const { request, reply } = open('PATCH', target, { 'content-type': PART, 'upload-offset': 0 });
    await write(request, file.subarray(0, -1));
    await eventually(async () => expect(await arrivedAt(address)).toBe(`${8 * MIB}`));
    const stopped = third.stop();
    expect((await reply).status).toBe(503);
    await stopped;
    const offset = Number(await offsetOf(address));
    expect((await append(address, offset, file.subarray(offset))).status).toBe(204);
    expect((await item(idOf(address))).file.equals(file)).toBe(true);
  });

  it('has one winner when two requests continue it at one offset', async () => {
    const [a, b] = [randomBytes(100_000), randomBytes(100_000)];
    const address = await begin(a.length);
    const head = { 'content-type': PART, 'upload-offset': 0, 'content-length': a.length };
    const [one, other] = [
      open('PATCH', new URL(address, first).href, head),
      open('PATCH', new URL(address, second).href, head),
    ];
    // Both have begun before either ends.
    await Promise.all([write(one.request, a.subarray(0, 50_000)), write(other.request, b.subarray(0, 50_000))]);
    one.request.end(a.subarray(50_000));
    other.request.end(b.subarray(50_000));
    const statuses = [(await one.reply).status, (await other.reply).status];
    expect(statuses.toSorted()).toEqual([204, 409]);
    const { file } = await item(idOf(address));
    expect(file.equals(statuses[0] === 204 ? a : b)).toBe(true);
  });

  it('refuses other offsets, lengths, types and versions, and stays as it was', async () => {
    const address = await begin(10);
    expect((await append(address, 0, Buffer.from('12345'))).status).toBe(204);
    const wrong = await append(address, 4, Buffer.from('x'));
    expect([wrong.status, wrong.json.code, wrong.headers.get('upload-offset')]).toEqual([409, 'upload_offset', '5']);
    expect((await append(address, 5, Buffer.from('123456'))).status).toBe(413);
    const chunked = open('PATCH', new URL(address, first).href, { 'content-type': PART, 'upload-offset': 5 });
    chunked.request.write('123');
    chunked.request.end('456');
    expect((await chunked.reply).status).toBe(413);
    expect((await append(address, 5, Buffer.from('x'), { 'content-type': 'text/plain' })).status).toBe(415);
    const version = await append(address, 5, Buffer.from('x'), { 'tus-resumable': '0.2.2' });
    expect([version.status, version.headers.get('tus-version')]).toEqual([412, '1.0.0']);
    const missing = await send('PATCH', address, { headers: { 'content-type': PART }, body: Buffer.from('x') });
    expect([missing.status, missing.json.detail[0]]).toMatchObject([
      422,
      { type: 'missing', loc: ['header', 'upload-offset'] },
    ]);
    expect((await append(address, 5, Buffer.alloc(0))).status).toBe(204);
    expect(await offsetOf(address)).toBe('5');
  });

  it('has a length of 1 byte to 100 MiB, and no content in its creation', async () => {
    const post = (headers: Record<string, string>, body?: Uint8Array) =>
      send('POST', UPLOADS, { headers, ...(body && { body }) });
    expect((await post({ 'upload-length': `${100 * MIB + 1}` })).status).toBe(413);
    for (const length of ['0', '-1', 'x', '1e3', '']) {
      const { status, json } = await post({ 'upload-length': length });
      expect([status, json.detail[0].loc]).toEqual([422, ['header', 'upload-length']]);
    }
    expect((await post({ 'upload-length': '5' }, Buffer.from('12345'))).status).toBe(422);
    expect((await post({ 'upload-length': '5', 'tus-resumable': '2.0.0' })).status).toBe(412);
    const long = `filename ${Buffer.from('x'.repeat(257)).toString('base64')}`;
    const name = await post({ 'upload-length': '5', 'upload-metadata': long });
    expect([name.status, name.json.detail[0].loc]).toEqual([422, ['header', 'upload-metadata']]);
    const graph = await send('POST', `${UPLOADS}?knowledge_graph=unknown`, { headers: { 'upload-length': '5' } });
    expect(graph.json.detail[0].loc).toEqual(['query', 'knowledge_graph']);
  });

  it('is begun once for an idempotency key, and another length is another request', async () => {
    const headers = { 'idempotency-key': newId() };
    const address = await begin(10, {}, headers);
    expect(await begin(10, {}, headers)).toBe(address);
    // The URL is the same.
    for (const changed of [{ 'upload-length': '11' }, { 'upload-length': '10', 'upload-metadata': 'filename YQ==' }]) {
      expect((await send('POST', `${UPLOADS}?`, { headers: { ...headers, ...changed } })).status).toBe(422);
    }
  });

  it('is a missing one for other organizations, and after it is cancelled', async () => {
    const address = await begin(10);
    const missing = (await send('GET', `/api/v1/media/${newId()}`)).bytes;
    const key = api.foreignKey;
    const refused = async (target: string, as?: string) => {
      const options = as === undefined ? {} : { key: as };
      const headers = { 'content-type': PART, 'upload-offset': '0' };
      for (const method of ['GET', 'DELETE'])
        expect(await send(method, target, options)).toMatchObject({ status: 404, bytes: missing });
      expect(await send('PATCH', target, { ...options, headers, body: Buffer.from('x') })).toMatchObject({
        status: 404,
        bytes: missing,
      });
    };
    await refused(address, key);
    await refused(`${UPLOADS}/${newId()}`);
    expect(await offsetOf(address)).toBe('0');
    expect((await send('DELETE', address)).status).toBe(204);
    await refused(address);
  });

  it('expires', async () => {
    const address = await begin(10);
    const { redis } = api.api.stores.platform;
    const key = `parley:upload:{${api.api.organizationId}:${idOf(address)}}`;
    const leftMs = await redis.send(key, (node) => node.pttl(key));
    expect(leftMs / 3_600_000).toBeCloseTo(24, 1);
    await redis.send(key, (node) => node.pexpire(key, 1));
    await eventually(async () => expect((await send('GET', address)).status).toBe(404));
    expect((await append(address, 0, Buffer.from('x'))).status).toBe(404);
  });
});

describe('the parts of an upload', () => {
  it('are at most 1,000', async () => {
    const address = await begin(2_000);
    const { redis } = api.api.stores.platform;
    const key = `parley:upload:{${api.api.organizationId}:${idOf(address)}}`;
    const part = JSON.stringify({ hash: 'a'.repeat(64), bytes: 1 });
    const parts = Object.fromEntries(Array.from({ length: 1_000 }, (_, offset) => [offset, part]));
    await redis.send(key, (node) => node.hset(key, parts));
    const { status, json } = await append(address, 1_000, Buffer.from('x'));
    expect([status, json.detail[0].loc]).toEqual([422, ['body']]);
  });

  it('are needed: an upload that has lost one is a missing one', async () => {
    const address = await begin(2);
    const { redis } = api.api.stores.platform;
    const key = `parley:upload:{${api.api.organizationId}:${idOf(address)}}`;
    await redis.send(key, (node) => node.hset(key, '0', JSON.stringify({ hash: 'a'.repeat(64), bytes: 1 })));
    expect((await append(address, 1, Buffer.from('x'))).status).toBe(404);
    expect((await send('GET', `/api/v1/media/${idOf(address)}`)).status).toBe(404);
  });
});

describe('uploads at the same time', () => {
  it('are at most 50 of one key, and begin again when one has ended', async () => {
    const url = new URL(UPLOADS, first).href;
    const headers = { 'content-type': 'application/octet-stream', 'content-length': 2 };
    const opened = Array.from({ length: 51 }, () => open('POST', url, headers));
    for (const { request } of opened) request.write('a');
    const refused = await Promise.race(opened.map((one) => one.reply.then((reply) => ({ ...one, ...reply }))));
    expect([refused.status, JSON.parse(refused.body ?? '')]).toMatchObject([429, { code: 'too_many_uploads' }]);
    const another = (key?: string) =>
      send('POST', UPLOADS, {
        headers: { 'content-type': headers['content-type'] },
        body: Buffer.from('b'),
        ...(key !== undefined && { key }),
      });
    expect((await another()).headers.get('retry-after')).toBe('5');
    expect((await append(`${UPLOADS}/${newId()}`, 0, Buffer.from('x'))).status).toBe(429);
    expect((await another(api.foreignKey)).status).toBe(200);
    expect((await send('GET', `${UPLOADS}/${newId()}`)).status).toBe(404);

    const [one, other, ...rest] = opened.filter(({ request }) => request !== refused.request);
    // One is given up, one is completed.
    one?.request.destroy();
    await eventually(async () => expect((await another()).status).toBe(200));
    other?.request.end('a');
    expect((await other?.reply)?.status).toBe(200);
    for (const { request } of rest) request.end('a');
    for (const { reply } of rest) expect((await reply).status).toBe(200);
  });
});

describe('a slow transfer', () => {
  /** Node looks for late requests every two seconds. */
  const LATE_MS = 6_000;
  let slow: string;
  let slowServer: Server;
  let stopSlow: () => Promise<void>;

  beforeAll(async () => {
    const config = parseConfig({ REQUEST_TIMEOUT_MS: '2000', RATE_LIMIT_PER_KEY: '0', RATE_LIMIT_PER_ADDRESS: '0' });
    const { server, stop } = await buildGateway(roleContext(api.api.stores.platform), config);
    slow = await server.listen({ host: '127.0.0.1', port: 0 });
    slowServer = server.app.server;
    stopSlow = stop;
  });
  afterAll(() => stopSlow?.());

  async function drip(request: ClientRequest): Promise<void> {
    for (const endsAt = performance.now() + LATE_MS; performance.now() < endsAt && !request.destroyed;) {
      await write(request, Buffer.from('x'));
      await pause(50);
    }
    request.end();
  }

  it('is not cut while it moves; other requests are', async () => {
    const address = new URL(await begin(1_000), slow).href;
    const whole = open('POST', `${slow}${UPLOADS}`, { 'content-type': 'text/plain' });
    const part = open('PATCH', address, { 'content-type': PART, 'upload-offset': 0 });
    const json = open('POST', `${slow}/api/v1/media`, { 'content-type': 'application/json' });
    const unknown = open('POST', `${slow}${UPLOADS}`, { 'content-type': 'text/plain', authorization: 'unknown' });
    unknown.request.flushHeaders();
    await Promise.all([whole, part, json].map(({ request }) => drip(request)));
    expect([(await whole.reply).status, (await part.reply).status]).toEqual([200, 204]);
    expect((await json.reply).status).toBe(408);
    expect((await unknown.reply).status).toBe(401);
    expect(Number(await offsetOf(address))).toBeGreaterThan(10);
  });

  it('is cut when it stalls, and keeps what has arrived', async () => {
    const address = new URL(await begin(1_000), slow).href;
    const whole = open('POST', `${slow}${UPLOADS}`, { 'content-type': 'text/plain' });
    const part = open('PATCH', address, { 'content-type': PART, 'upload-offset': 0 });
    await Promise.all([write(whole.request, Buffer.from('xxx')), write(part.request, Buffer.from('xxx'))]);
    expect([(await whole.reply).status, (await part.reply).status]).toEqual([408, 408]);
    expect(await offsetOf(address)).toBe('3');
  });

  it('is cut when the client of a download reads nothing', async () => {
    const body = randomBytes(30 * MIB);
    const { json } = await send('POST', UPLOADS, { headers: { 'content-type': 'text/plain' }, body });
    const connections = () => promisify(slowServer.getConnections.bind(slowServer))();
    const before = await connections();
    const request = httpRequest(new URL(new URL(json.file_url).pathname, slow), { agent: false }).end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    expect(response.statusCode).toBe(200);
    await eventually(async () => expect(await connections()).toBeLessThanOrEqual(before));
    await expect(buffer(response)).rejects.toThrow('aborted');
  });
});
