/** A bucket behind a proxy that cuts, delays and falsifies: no file of it is believed, and none is given up. */
import { randomBytes } from 'node:crypto';

import sharp from 'sharp';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { downloadOf } from '#test/support/download.ts';
import { DocumentsApi } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';
import {
  answers,
  type Behaviour,
  changes,
  endsEarly,
  flips,
  isCut,
  type S3Proxy,
  stalls,
  startS3Proxy,
} from '#test/support/s3/s3-proxy.ts';
import { type S3Server, startS3Server } from '#test/support/s3/s3-server.ts';
import { findS3Server } from '#test/support/s3/versitygw.mjs';

const program = await findS3Server();
const UPLOADS = '/api/v1/media/uploads';
const ENDS_EARLY: [string, Behaviour] = ['ends early', endsEarly];
const IS_CUT: [string, Behaviour] = ['is cut', isCut];
const HAS_WRONG_BIT: [string, Behaviour] = ['has a wrong bit', flips];
const BROKEN: readonly [string, Behaviour][] = [
  ENDS_EARLY,
  IS_CUT,
  HAS_WRONG_BIT,
  ['is longer', changes((body) => Buffer.concat([body, body]))],
  ['is a web page', answers(200, '<!doctype html><h1>Welcome to nginx!</h1>')],
];

describe.skipIf(program === null)('a bucket whose answers are wrong', () => {
  let s3: S3Server;
  let proxy: S3Proxy;
  let api: DocumentsApi;
  let origin: string;
  beforeAll(async () => {
    s3 = await startS3Server(program ?? '');
    proxy = await startS3Proxy(s3.options.endpoint ?? '');
    api = await DocumentsApi.start({ blobsS3: { ...s3.options, endpoint: proxy.endpoint, idleMs: 1_000 } });
    origin = await api.api.listen();
  }, 120_000);
  afterEach(() => proxy?.forwardAll());
  afterAll(async () => {
    await api?.stop();
    await proxy?.stop();
    await s3?.stop();
  });

  const send = (method: 'POST' | 'PATCH', url: string, body: Buffer | undefined, headers: Record<string, string>) =>
    api.call(method, url, body, headers);
  const uploaded = async (content: Buffer) =>
    (await send('POST', UPLOADS, content, { 'content-type': 'application/octet-stream' })).json;
  const item = async (id: string) => (await api.call('GET', `/api/v1/media/${id}`)).json;
  const settled = (id: string) =>
    eventually(async () => {
      const found = await item(id);
      expect(found.status).toMatch(/^(Ready|Failed)/);
      return found;
    });
  const open = (address: string, init: RequestInit = {}) => fetch(new URL(new URL(address).pathname, origin), init);
  const PART = [206, 'bytes 1000-300999/400000', 'whole'];
  async function partOf(address: string, content: Buffer) {
    const part = await open(address, { headers: { range: 'bytes=1000-300999' } });
    const download = await downloadOf(Promise.resolve(part), content.subarray(1000, 301_000));
    return [part.status, part.headers.get('content-range'), download];
  }
  const append = (address: string, offset: number, body: Buffer) =>
    send('PATCH', address, body, { 'content-type': 'application/offset+octet-stream', 'upload-offset': `${offset}` });

  /** An upload that lacks its last part. */
  async function half(content: Buffer) {
    const begun = await send('POST', UPLOADS, undefined, { 'upload-length': `${content.length}` });
    const address = String(begun.headers['location']);
    const middle = content.length >> 1;
    expect((await append(address, 0, content.subarray(0, middle))).status).toBe(204);
    return { complete: () => append(address, middle, content.subarray(middle)), id: address.split('/').at(-1) ?? '' };
  }

  it.each(BROKEN)('does not acknowledge an upload whose first part %s', async (_name, broken) => {
    const content = randomBytes(300_000);
    const { complete, id } = await half(content);
    proxy.behave('get', broken);
    const refused = await complete();
    expect([refused.status, refused.json?.code]).toEqual([503, 'store_unavailable']);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    proxy.forwardAll();
    expect((await complete()).status).toBe(204);
    expect(await downloadOf(open((await item(id)).file_url), content)).toBe('whole');
  });

  it.each([ENDS_EARLY, HAS_WRONG_BIT])('completes an upload whose first part %s once', async (_name, broken) => {
    const content = randomBytes(300_000);
    const { complete, id } = await half(content);
    proxy.behave('get', broken, 1);
    expect((await complete()).status).toBe(204);
    expect(await downloadOf(open((await item(id)).file_url), content)).toBe('whole');
  });

  it.each([IS_CUT, HAS_WRONG_BIT])('gives an image no verdict while its file %s', async (_name, broken) => {
    const picture = await sharp({ create: { width: 40, height: 20, channels: 3, background: '#36c' } })
      .png()
      .toBuffer();
    proxy.behave('get', broken);
    const before = proxy.arrived.length;
    const { id } = await uploaded(picture);
    await eventually(() => proxy.arrived.slice(before).filter((one) => one === 'get').length > 4);
    expect((await item(id)).status).toMatch(/^(Queued|Processing)$/);
    proxy.forwardAll();
    expect(await settled(id)).toMatchObject({ status: 'Ready', width: 40, height: 20 });
  });

  it.each([ENDS_EARLY, HAS_WRONG_BIT])('lets no document learn from a file that %s', async (_name, broken) => {
    const text = Buffer.from('The lighthouse of Bremerhaven stands in the sea. '.repeat(200));
    const { id } = await settled((await uploaded(text)).id);
    const body = { knowledge_graph: await api.newGraph(), media: id };
    proxy.behave('get', broken);
    const refused = await api.call('POST', '/api/v1/documents', body);
    expect([refused.status, refused.json.code]).toEqual([503, 'store_unavailable']);
    proxy.forwardAll();
    const { id: document } = (await api.call('POST', '/api/v1/documents', body)).json;
    expect((await api.settled(document)).status).toBe('Ready');
    const headers = { authorization: api.api.rootKey };
    const learnt = await fetch(`${origin}/api/v1/documents/${document}/content`, { headers });
    expect(await learnt.text()).toBe(text.toString());
  });

  it.each([...BROKEN, ['stalls', stalls] as const])('breaks the download of a file that %s', async (_name, broken) => {
    const content = randomBytes(400_000);
    const { file_url: address } = await uploaded(content);
    proxy.behave('get', broken);
    expect(['broken', 'store_unavailable']).toContain(await downloadOf(open(address), content));
    proxy.forwardAll();
    expect(await downloadOf(open(address), content)).toBe('whole');
  });

  it.each([ENDS_EARLY, IS_CUT, ['stalls', stalls] as const])(
    'continues a download after an answer that %s once',
    async (_name, broken) => {
      const content = randomBytes(400_000);
      const { file_url: address } = await uploaded(content);
      proxy.behave('get', broken, 1);
      expect(await downloadOf(open(address), content)).toBe('whole');
      proxy.behave('get', broken, 1);
      expect(await partOf(address, content)).toEqual(PART);
    },
  );

  it('takes the part out of the whole file where the store ignores ranges', async () => {
    const content = randomBytes(400_000);
    const { file_url: address } = await uploaded(content);
    proxy.behave('get', answers(200, content));
    expect(await partOf(address, content)).toEqual(PART);
  });

  it.each([
    ['another part', 206, 'bytes 2000-3999/400000'],
    ['a part of another file', 206, 'bytes 1000-2999/9000'],
    ['a part without its place', 206, ''],
    ['a part as the whole', 200, ''],
    ['a part in other units', 206, 'items 1000-2999/400000'],
  ])('answers 503 where the store returns %s', async (_name, status, range) => {
    const content = randomBytes(400_000);
    const { file_url: address } = await uploaded(content);
    proxy.behave(
      'get',
      answers(status, content.subarray(2000, 4000), { ...(range !== '' && { 'content-range': range }) }),
    );
    const part = await open(address, { headers: { range: 'bytes=1000-2999' } });
    expect([part.status, await part.json()]).toMatchObject([503, { code: 'store_unavailable' }]);
    expect(part.headers.get('content-range')).toBeNull();
    expect(part.headers.get('cache-control') ?? '').not.toContain('immutable');
  });

  it('serves a file by the size that the item has, whatever HEAD says', async () => {
    const content = randomBytes(10_000);
    const { file_url: address } = await uploaded(content);
    const file = async (init?: RequestInit) => {
      const reply = await open(address, init);
      return [reply.status, reply.headers.get('content-length')];
    };
    proxy.behave('head', answers(200, 'x'.repeat(5_000), { 'last-modified': new Date().toUTCString() }));
    expect(await downloadOf(open(address), content)).toBe('whole');
    expect((await file({ method: 'HEAD' }))[0]).toBe(503);
    proxy.forwardAll();
    expect(await file({ method: 'HEAD' })).toEqual([200, '10000']);
  });
});
