/** Answers of S3 servers and of what is before them, in the forms that users of such stores report. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { type Blob, type BlobStore, s3BlobStore } from '#libs/platform/blobs/index.ts';
import {
  answers,
  type Behaviour,
  resetsRequest,
  s3Error,
  type S3Proxy,
  startS3Proxy,
  trickles,
} from '#test/support/s3/s3-proxy.ts';
import { type S3Server, startS3Server } from '#test/support/s3/s3-server.ts';
import { findS3Server } from '#test/support/s3/versitygw.mjs';

import { chunksOf } from './contract.ts';

const program = await findS3Server();
const MAX = { maxBytes: 1024 * 1024 };
const XML = { 'content-type': 'application/xml' };
const UNAVAILABLE = { code: 'store_unavailable' };
const PAGE = '<!doctype html><h1>503 Service Temporarily Unavailable</h1>';

describe.skipIf(program === null)('a bucket of', () => {
  let server: S3Server;
  let proxy: S3Proxy;
  let temporary: string;
  let blobs: BlobStore;
  beforeAll(async () => {
    server = await startS3Server(program ?? '');
    proxy = await startS3Proxy(server.options.endpoint ?? '');
    temporary = await mkdtemp(join(tmpdir(), 'parley-test-blobs-'));
    blobs = s3BlobStore({ ...server.options, endpoint: proxy.endpoint, idleMs: 1_000 }, temporary);
  }, 120_000);
  afterEach(() => proxy?.forwardAll());
  afterAll(async () => {
    blobs?.close();
    await proxy?.stop();
    await server?.stop();
    await rm(temporary, { recursive: true, force: true });
  });

  const put = (content = randomBytes(200_000)) => blobs.put(chunksOf(content), MAX);
  async function contentHash(blob: Blob): Promise<string> {
    const chunks = (await (await blobs.read(blob))!.toArray()) as Buffer[];
    return createHash('sha256').update(Buffer.concat(chunks)).digest('hex');
  }

  it('a store that refuses headers for checksums takes and returns files', async () => {
    // Backblaze B2, Cloudflare R2, OVH: 400 or 501 for each of these headers.
    const refused = /^x-amz-(checksum-|sdk-checksum-algorithm|trailer|decoded-content-length)/;
    const isRefused = (headers: object): string | undefined => Object.keys(headers).find((name) => refused.test(name));
    const strict: Behaviour = async (exchange) => {
      const { headers, reply, forward } = exchange;
      const name =
        isRefused(headers) ?? (headers['content-encoding'] === 'aws-chunked' ? 'content-encoding' : undefined);
      const message = `Unsupported header '${name}' received for this API call.`;
      if (name !== undefined) return answers(400, s3Error('InvalidArgument', message), XML)(exchange);
      const answer = await forward();
      reply.writeHead(answer.status, answer.headers).end(answer.body);
    };
    for (const operation of ['get', 'put', 'list', 'delete'] as const) proxy.behave(operation, strict);
    const blob = await put();
    expect(await contentHash(blob)).toBe(blob.hash);
    expect(await blobs.remove(blob.hash, { putBeforeMs: Date.now() + 60_000 })).toBe(200_000);
  });

  it('a proxy that changes what is uploaded is noticed by the store', async () => {
    const changing: Behaviour = async ({ url, headers, incoming, reply }) => {
      const chunks = await incoming.toArray();
      const content = Buffer.concat(chunks);
      if (content.length > 0) content[0] = content[0]! ^ 1;
      const { host: _, ...others } = headers;
      const answer = await fetch(`${server.options.endpoint}${url}`, {
        method: 'PUT',
        headers: { ...(others as Record<string, string>), connection: 'keep-alive' },
        body: content,
      });
      reply.writeHead(answer.status).end(await answer.text());
    };
    proxy.behave('put', changing);
    const content = randomBytes(1_000);
    await expect(put(content)).rejects.toMatchObject(UNAVAILABLE);
    proxy.forwardAll();
    expect(await blobs.size(createHash('sha256').update(content).digest('hex'))).toBeNull();
  });

  it.each<[string, Behaviour]>([
    ['503 SlowDown', answers(503, s3Error('SlowDown', 'Please reduce your request rate.'), XML)],
    ['503 with a page', answers(503, PAGE, { 'content-type': 'text/html' })],
    ['500 without a body', answers(500, '')],
    ['a reset in the middle of the content', resetsRequest],
    ['307, which a new bucket answers', answers(307, s3Error('TemporaryRedirect', 'Please re-send'), XML)],
  ])('a store that answers an upload with %s gets it again', async (_name, behaviour) => {
    proxy.behave('put', behaviour, 1);
    const blob = await put();
    expect(await contentHash(blob)).toBe(blob.hash);
  });

  it.each<[string, Behaviour]>([
    ['acknowledges and loses it', answers(200, '')],
    ['answers 200 with an error', answers(200, s3Error('InternalError', 'We encountered an internal error.'), XML)],
  ])('a store that %s has acknowledged no upload', async (_name, behaviour) => {
    proxy.behave('put', behaviour);
    await expect(put()).rejects.toMatchObject(UNAVAILABLE);
  });

  it('a store that has half of an upload has not acknowledged it', async () => {
    const headers = { 'last-modified': new Date().toUTCString() };
    proxy.behave('head', answers(200, 'x'.repeat(100_000), headers));
    await expect(put()).rejects.toMatchObject(UNAVAILABLE);
  });

  it.each<[string, Behaviour]>([
    ['an error with 200', answers(200, s3Error('InternalError', 'We encountered an internal error.'), XML)],
    ['a page with 200', answers(200, '<html><body>Welcome to nginx!</body></html>', { 'content-type': 'text/html' })],
    ['nothing with 200', answers(200, '')],
    [
      'the same page again and again',
      answers(
        200,
        '<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>1</NextContinuationToken></ListBucketResult>',
        XML,
      ),
    ],
    [
      'a page without its successor',
      answers(200, '<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>', XML),
    ],
  ])('a list that is %s is a fault, and not empty', async (_name, behaviour) => {
    await put();
    proxy.behave('list', behaviour);
    await expect(Array.fromAsync(blobs.list())).rejects.toMatchObject(UNAVAILABLE);
    await expect(put()).rejects.toMatchObject(UNAVAILABLE);
    proxy.forwardAll();
    expect(await Array.fromAsync(blobs.list())).not.toEqual([]);
  });

  it('404 of a proxy is no missing file', async () => {
    const blob = await put();
    proxy.behave('get', answers(404, '<html>404 page not found</html>', { 'content-type': 'text/html' }));
    await expect(blobs.read(blob)).rejects.toMatchObject(UNAVAILABLE);
  });

  it('an answer that trickles ends', async () => {
    const blob = await put();
    proxy.behave('get', trickles);
    await expect(contentHash(blob)).rejects.toMatchObject(UNAVAILABLE);
  });

  it.each<[string, number, string, RegExp]>([
    [
      'RequestTimeTooSkewed',
      403,
      'The difference between the request time and the current time is too large.',
      /clock/,
    ],
    ['PermanentRedirect', 301, 'The bucket must be addressed using another endpoint', /MEDIA_S3_REGION.*eu-west-1/],
    ['AuthorizationHeaderMalformed', 400, "the region 'us-east-1' is wrong", /MEDIA_S3_REGION.*eu-west-1/],
    ['NoSuchBucket', 404, 'The specified bucket does not exist', /MEDIA_S3_BUCKET/],
    ['InvalidAccessKeyId', 403, 'The key does not exist', /MEDIA_S3_ACCESS_KEY_ID/],
    ['SignatureDoesNotMatch', 403, 'The signature does not match', /MEDIA_S3_SECRET_ACCESS_KEY/],
    ['AccessDenied', 403, 'Access Denied', /AccessDenied: Access Denied/],
  ])('%s is named with the variable that it is about', async (code, status, message, expected) => {
    proxy.behave('list', answers(status, s3Error(code, message, '<Region>eu-west-1</Region>'), XML));
    const fault = await blobs.ping().catch((error: unknown) => error);
    expect(fault).toMatchObject({ ...UNAVAILABLE, cause: { message: expect.stringMatching(expected) } });
    expect(fault).toMatchObject({ cause: { message: expect.stringContaining(code) } });
  });

  it('a web page at the address of the store is named', async () => {
    proxy.behave('list', answers(200, '<html><body>MinIO Console</body></html>', { 'content-type': 'text/html' }));
    await expect(blobs.size('0'.repeat(64))).rejects.toMatchObject(UNAVAILABLE);
    const fault = await blobs.ping().catch((error: unknown) => error);
    expect(fault).toMatchObject({ ...UNAVAILABLE, cause: { message: expect.stringMatching(/MEDIA_S3_ENDPOINT/) } });
  });
});
