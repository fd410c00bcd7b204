import { once } from 'node:events';
import { type Duplex, pipeline, type Readable, Transform } from 'node:stream';
import * as zlib from 'node:zlib';

import { FetchError, TransferError } from './fetch-error.ts';

/** Bytes that a server may send in addition to `maxBytes`, because compression makes some bodies longer. */
const RAW_EXCESS_BYTES = 64 * 1024;
/** Codings of one body. Servers use one. */
const MAX_CODINGS = 2;
/** Memory of a zstd decoder: 8 MiB, as RFC 9659 demands for HTTP. */
const MAX_ZSTD_WINDOW_LOG = 23;
const RATE_WINDOW_MS = 10_000;

export const ACCEPT_ENCODING = 'gzip, deflate, br, zstd';

export interface BodyRules {
  /** Of the decoded body. */
  readonly maxBytes: number;
  /** The rate that the server must reach on average of a window. Default: any. */
  readonly leastBytesPerSecond?: number | undefined;
  /** Default: 10,000. */
  readonly rateWindowMs?: number | undefined;
  /** Called once: with null after the last byte, else with what `errorOf` returned, or undefined if the reader gave up. */
  onEnd(bytes: number, error: Error | null | undefined): void;
  /** The form in which the body fails. */
  errorOf(error: Error): Error;
}

/**
 * The decoded body. A few chunks of at most 64 KiB are in memory, however much a bomb expands to.
 *
 * @param contentEncoding with codings, waits for the first byte
 * @throws TransferError `decode_failed` for unknown codings
 */
export async function decodedBody(
  raw: Readable,
  contentEncoding: string,
  { maxBytes, leastBytesPerSecond, rateWindowMs = RATE_WINDOW_MS, onEnd, errorOf }: BodyRules,
): Promise<Readable> {
  const codings = codingsOf(contentEncoding);
  // Servers also name a coding where there is no body, for instance in a 304.
  const first = codings.length === 0 ? null : await peek(raw);
  const decoders = first === null ? [] : codings.toReversed().map((coding) => decoderOf(coding, first));
  const body = atMost(maxBytes, maxBytes);
  // Without a coding, what is received is the body.
  const received = decoders.length === 0 ? body : atMost(maxBytes + RAW_EXCESS_BYTES, maxBytes);
  const rate =
    leastBytesPerSecond === undefined ? undefined : watchRate(raw, received, body, leastBytesPerSecond, rateWindowMs);
  body.transform._destroy = (error, callback) => {
    clearInterval(rate);
    const isWhole = body.transform.readableEnded;
    const failure = error && errorOf(decodeErrorOf(error));
    if (failure instanceof FetchError) failure.bytes = Math.max(received.bytes(), body.bytes());
    onEnd(body.bytes(), failure ?? (isWhole ? null : undefined));
    callback(failure);
  };
  const stages = new Set([raw, received.transform, ...decoders, body.transform]);
  return pipeline([...stages], () => undefined) as unknown as Readable;
}

/** Ends a transfer that is too slow, unless the reader has yet to take what has arrived. */
function watchRate(
  raw: Readable,
  received: Counted,
  body: Counted,
  leastBytesPerSecond: number,
  windowMs: number,
): NodeJS.Timeout {
  let before = 0;
  return setInterval(() => {
    const bytes = received.bytes() - before;
    before = received.bytes();
    if (body.transform.readableLength > 0 || bytes >= (leastBytesPerSecond * windowMs) / 1_000) return;
    raw.destroy(new TransferError('too_slow', `the server sends less than ${leastBytesPerSecond} bytes a second`));
  }, windowMs);
}

/** Whether the header `Content-Length` shows that the body is too large. */
export function isTooLong(contentLength: string, maxBytes: number): boolean {
  return Number(contentLength) > maxBytes + RAW_EXCESS_BYTES;
}

export function tooLarge(maxBytes: number): TransferError {
  return new TransferError('too_large', `the response has more than ${maxBytes} bytes`);
}

const CODINGS = new Set(['gzip', 'x-gzip', 'deflate', 'br', 'zstd', 'compress', 'x-compress']);

function codingsOf(contentEncoding: string): readonly string[] {
  const codings = contentEncoding
    .split(',')
    .map((coding) => coding.trim().toLowerCase())
    // As in browsers: servers write charsets and words of their own here, and send what they say elsewhere.
    .filter((coding) => CODINGS.has(coding));
  if (codings.length > MAX_CODINGS)
    throw new TransferError('decode_failed', 'the response is compressed too many times');
  return codings;
}

/** The first bytes of a stream, which stay in it; null if it has none. */
async function peek(stream: Readable): Promise<Buffer | null> {
  for (;;) {
    const chunk = stream.read() as Buffer | null;
    if (chunk !== null) {
      stream.unshift(chunk);
      return chunk;
    }
    if (stream.readableEnded) return null;
    if (stream.errored !== null) throw stream.errored;
    const waiting = new AbortController();
    const { signal } = waiting;
    await Promise.race([once(stream, 'readable', { signal }), once(stream, 'end', { signal })]).finally(() =>
      waiting.abort(),
    );
  }
}

interface Counted {
  readonly transform: Transform;
  bytes(): number;
}

function atMost(limit: number, maxBytes: number): Counted {
  let bytes = 0;
  const transform = new Transform({
    transform(chunk: Buffer, _encoding, callback) {
      bytes += chunk.length;
      if (bytes > limit) callback(tooLarge(maxBytes));
      else callback(null, chunk);
    },
  });
  return { transform, bytes: () => bytes };
}

function decoderOf(coding: string, first: Buffer): Duplex {
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return zlib.createGunzip();
    case 'deflate':
      // Some servers leave out the header of zlib (RFC 9110, 8.4.1.2).
      return ((first[0] ?? 0) & 0x0f) === 8 ? zlib.createInflate() : zlib.createInflateRaw();
    case 'br':
      return zlib.createBrotliDecompress();
    case 'zstd':
      return zlib.createZstdDecompress({ params: { [zlib.constants.ZSTD_d_windowLogMax]: MAX_ZSTD_WINDOW_LOG } });
    default:
      throw new TransferError('decode_failed', 'the response has an unknown Content-Encoding');
  }
}

/** Errors of decoders have a number, and errors of sockets also the name of a system call. */
function decodeErrorOf(error: Error): Error {
  if (!('errno' in error) || typeof error.errno !== 'number' || 'syscall' in error) return error;
  return new TransferError('decode_failed', 'the response does not decode as its Content-Encoding says', error);
}
