import type { Socket } from 'node:net';
import * as zlib from 'node:zlib';

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import {
  createFetcher,
  type Fetcher,
  FetchError,
  type FetchFailure,
  type FetchOptions,
} from '#libs/platform/fetch/index.ts';
import { createMetrics, type Metrics } from '#libs/platform/telemetry/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { type RawServer, response, startRawServer } from '#test/support/fetch/raw-server.ts';

const MAX_BYTES = 1_000_000;
/** Decoders and sockets add a chunk to what the limit allows. */
const CHUNK_BYTES = 64 * 1024;
const OK = 'HTTP/1.1 200 OK\r\n';
const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`;
const MEBIBYTE = Buffer.alloc(1 << 20, 'x');
const ZEROS = Buffer.alloc(16 << 20);

/** 1 GiB of zeros, in up to 1 MB: a file may have many members. */
const gzipBomb = Buffer.concat(Array<Buffer>(64).fill(zlib.gzipSync(ZEROS)));
const zstdBomb = Buffer.concat(Array<Buffer>(64).fill(zlib.zstdCompressSync(ZEROS)));

const quick = { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } };
/** A decoder would have to reserve 16 MiB for it. */
const largeWindow = zlib.zstdCompressSync(ZEROS, { params: { [zlib.constants.ZSTD_c_windowLog]: 24 } });

type Answer = (socket: Socket) => void;

/** Each with the reason that the fetch must fail for. */
const hostile: [what: string, reason: FetchFailure, answer: Answer, options?: FetchOptions][] = [
  ['an endless body', 'too_large', (socket) => writeForever(socket, CHUNKED, chunk(MEBIBYTE))],
  ['an endless body until the connection closes', 'too_large', (socket) => writeForever(socket, `${OK}\r\n`, MEBIBYTE)],
  ['a length of 1 TB', 'too_large', (socket) => socket.write(`${OK}content-length: 1000000000000\r\n\r\n`)],
  ['a gzip bomb', 'too_large', (socket) => socket.write(response(gzipBomb, { 'content-encoding': 'gzip' }))],
  ['a gzip bomb in gzip', 'too_large', (socket) => socket.write(coded('gzip, gzip', zlib.gzipSync(gzipBomb)))],
  ['a zlib bomb', 'too_large', (socket) => socket.write(coded('deflate', zlib.deflateSync(ZEROS)))],
  ['a raw deflate bomb', 'too_large', (socket) => socket.write(coded('deflate', zlib.deflateRawSync(ZEROS)))],
  ['a Brotli bomb', 'too_large', (socket) => socket.write(coded('br', zlib.brotliCompressSync(ZEROS, quick)))],
  ['a zstd bomb', 'too_large', (socket) => socket.write(coded('zstd', zstdBomb))],
  ['a zstd frame with a window of 16 MiB', 'decode_failed', (socket) => socket.write(coded('zstd', largeWindow))],
  ['gzip that is nothing', 'decode_failed', (socket) => socket.write(coded('gzip', 'not gzip'))],
  [
    'gzip that breaks off',
    'decode_failed',
    (socket) => socket.write(coded('gzip', zlib.gzipSync('x'.repeat(99)).subarray(0, -9))),
  ],
  ['three codings', 'decode_failed', (socket) => socket.write(coded('gzip,gzip,gzip', 'x'))],
  ['an unknown coding', 'decode_failed', (socket) => socket.write(coded('compress', 'x'))],
  ['one byte a second', 'timeout', (socket) => drip(socket, CHUNKED, '1\r\nx\r\n'), { timeoutMs: 1_500 }],
  ['one byte of a header a second', 'timeout', (socket) => drip(socket, `${OK}x: `, 'x'), { timeoutMs: 1_500 }],
  ['no answer', 'timeout', () => undefined, { timeoutMs: 300 }],
  ['a head without a body', 'timeout', (socket) => socket.write(`${OK}content-length: 5\r\n\r\n`), { timeoutMs: 300 }],
  [
    'a coded body that does not begin',
    'timeout',
    (socket) => socket.write(`${OK}content-encoding: br\r\n\r\n`),
    { timeoutMs: 300 },
  ],
  [
    'endless interim responses',
    'timeout',
    (socket) => writeForever(socket, '', Buffer.from('HTTP/1.1 103 Early\r\n\r\n'.repeat(999))),
    { timeoutMs: 500 },
  ],
  ['endless headers', 'bad_response', (socket) => writeForever(socket, OK, Buffer.from(`x-${'y'.repeat(60)}: z\r\n`))],
  ['one endless header', 'bad_response', (socket) => writeForever(socket, `${OK}x: `, MEBIBYTE)],
  ['an endless status', 'timeout', (socket) => writeForever(socket, 'HTTP/1.1 200 ', MEBIBYTE), { timeoutMs: 500 }],
  ['a chunk without a size', 'bad_response', (socket) => socket.write(`${CHUNKED}zz\r\nabc\r\n0\r\n\r\n`)],
  [
    'an endless chunk extension',
    'timeout',
    (socket) => writeForever(socket, `${CHUNKED}1;`, MEBIBYTE),
    { timeoutMs: 500 },
  ],
  ['two lengths', 'bad_response', (socket) => socket.write(`${OK}content-length: 1\r\ncontent-length: 2\r\n\r\nab`)],
  [
    'a length and chunks',
    'bad_response',
    (socket) => socket.write(`${OK}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n`),
  ],
  ['a length that is no number', 'bad_response', (socket) => socket.write(`${OK}content-length: -1\r\n\r\n`)],
  ['another protocol', 'bad_response', (socket) => socket.write('SSH-2.0-OpenSSH_9.2p1\r\n')],
  [
    'a body that is shorter than its length',
    'disconnected',
    (socket) => socket.end(`${OK}content-length: 9\r\n\r\nabc`),
  ],
  ['chunks that break off', 'disconnected', (socket) => socket.end(`${CHUNKED}5\r\nab`)],
  ['a connection that closes', 'disconnected', (socket) => socket.end()],
  ['a reset in the head', 'disconnected', (socket) => socket.resetAndDestroy()],
  [
    'a reset in the body',
    'disconnected',
    (socket) => socket.write(`${CHUNKED}5\r\nab`, () => socket.resetAndDestroy()),
  ],
  ['a redirect to itself', 'redirect_loop', (socket) => socket.write(redirectTo('?'))],
  ['a redirect to nothing', 'invalid_url', (socket) => socket.write(redirectTo('http://'))],
  ['a redirect to a file', 'scheme_refused', (socket) => socket.write(redirectTo('file:///etc/passwd'))],
];

let server: RawServer;
let metrics: Metrics;
let fetcher: Fetcher;

beforeAll(async () => {
  server = await startRawServer((socket, path) => answers[path]?.(socket));
});
afterAll(() => server.stop());

beforeEach(() => {
  metrics = createMetrics({ processMetrics: false });
  fetcher = createFetcher({ metrics, allowHosts: [{ host: '127.0.0.1', port: server.port }] });
});
afterEach(() => fetcher.close());

const answers: Record<string, Answer> = {};

function urlOf(name: string, answer: Answer): string {
  const path = `/${encodeURIComponent(name)}`;
  answers[path] = answer;
  return `http://127.0.0.1:${server.port}${path}`;
}

async function bytesFetched(): Promise<number> {
  return Number(/^parley_fetched_bytes_total (\d+)$/m.exec(await metrics.scrape())?.[1]);
}

describe('a fetch fails, in bounded time and memory, with what the server does', () => {
  it.each(hostile)('%s: %s', async (what, reason, answer, options) => {
    const url = urlOf(what, answer);
    const failed = fetcher.fetch(url, { maxBytes: MAX_BYTES, ...options });
    await expect(failed).rejects.toBeInstanceOf(FetchError);
    await expect(failed).rejects.toMatchObject({ reason });
    expect(await bytesFetched()).toBeLessThanOrEqual(MAX_BYTES + CHUNK_BYTES);
    expect(await metrics.scrape()).toContain(`parley_fetches_total{outcome="${reason}"} 1`);
    await fetcher.close();
    await eventually(() => server.open === 0);
  });
});

function coded(coding: string, body: Buffer | string): Buffer {
  return response(body, { 'content-encoding': coding });
}

function redirectTo(location: string): Buffer {
  return response('', { location }, '302 Found');
}

function chunk(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
}

function writeForever(socket: Socket, head: string, bytes: Buffer): void {
  socket.write(head);
  const more = (): void => {
    let isTaken = true;
    while (isTaken && !socket.destroyed) isTaken = socket.write(bytes);
  };
  socket.on('drain', more);
  more();
}

function drip(socket: Socket, head: string, drop: string): void {
  socket.write(head);
  const timer = setInterval(() => socket.write(drop), 1_000);
  socket.once('close', () => clearInterval(timer));
}
