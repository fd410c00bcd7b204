import { Readable } from 'node:stream';

import type { GetObjectCommandOutput, PutObjectCommandInput, S3 } from '@aws-sdk/client-s3';

import { OtherContent } from './blob-faults.ts';
import type { Blob, ByteRange } from './blob-store.ts';

export interface S3Options {
  readonly bucket: string;
  /** Begins all keys; empty, or with a slash at its end. */
  readonly prefix: string;
  /** `https://minio.internal:9000`; null for that of AWS in the region. */
  readonly endpoint: string | null;
  readonly region: string;
  /** Whether the bucket is in the path of addresses, and not in their host name. */
  readonly isPathStyle: boolean;
  /** Null: those that the SDK finds by itself, such as the role of a pod or a machine. */
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string } | null;
  /** Longest time until a reply begins, of each of two attempts. Default 2,000. */
  readonly replyMs?: number;
  /** Longest time without a byte in either direction. Default 15,000. */
  readonly idleMs?: number;
}

const CONNECT_MS = 1_500;
/** This also ends replies to clients that stop reading; they are continued when the client reads on. */
export const IDLE_MS = 15_000;
const MAX_CONNECTIONS = 500;
const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Loads the SDK, which takes memory that a Parley without S3 does not need. */
export async function connectS3({
  endpoint,
  region,
  isPathStyle,
  credentials,
  replyMs = 2_000,
  idleMs = IDLE_MS,
}: S3Options): Promise<S3> {
  const { S3 } = await import('@aws-sdk/client-s3');
  const client = new S3({
    region,
    forcePathStyle: isPathStyle,
    ...(endpoint !== null && { endpoint }),
    ...(credentials !== null && { credentials }),
    maxAttempts: 2,
    // Errors are reported where they are handled.
    logger: SILENT,
    // Stores other than AWS refuse checksum headers that they do not know.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    expectContinueHeader: false,
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      requestTimeout: replyMs,
      throwOnRequestTimeout: true,
      socketTimeout: idleMs,
      httpAgent: { maxSockets: MAX_CONNECTIONS },
      httpsAgent: { maxSockets: MAX_CONNECTIONS },
    },
  });
  client.middlewareStack.add(
    (next) => (step) =>
      next(step).catch((error: S3Error) => {
        error.message = explained(error);
        throw error;
      }),
    { step: 'initialize', priority: 'high' },
  );
  return client;
}

/** The store's code and sentence, with the variable that they are about. */
function explained({ name, message, Region: region, $metadata }: S3Error): string {
  if (message.includes('Deserialization error')) {
    return `the store answered ${$metadata?.httpStatusCode ?? 'a request'} with a body that is no XML`;
  }
  const isAbout = region === undefined ? '' : `, the bucket is in ${region}`;
  const hint = name in HINTS ? ` (${HINTS[name]}${HINTS[name] === REGION ? isAbout : ''})` : '';
  return message.startsWith(name) ? `${message}${hint}` : `${name}: ${message}${hint}`;
}

const REGION = 'MEDIA_S3_REGION is wrong';
const HINTS: Readonly<Record<string, string>> = {
  RequestTimeTooSkewed: 'the clock of this machine or that of the store is wrong',
  PermanentRedirect: REGION,
  AuthorizationHeaderMalformed: REGION,
  NoSuchBucket: 'see MEDIA_S3_BUCKET',
  InvalidAccessKeyId: 'see MEDIA_S3_ACCESS_KEY_ID',
  SignatureDoesNotMatch: 'see MEDIA_S3_SECRET_ACCESS_KEY',
  CredentialsProviderError: 'see MEDIA_S3_ACCESS_KEY_ID',
};

/**
 * Sends a content whose hash is known. The hash is part of the signature, so that every store knows and checks it; the
 * headers for checksums are unknown to some stores.
 *
 * @param request its body is a stream, which is not sent again
 */
export async function putSigned(client: S3, hash: string, request: PutObjectCommandInput): Promise<void> {
  const { PutObjectCommand } = await import('@aws-sdk/client-s3');
  const command = new PutObjectCommand(request);
  command.middlewareStack.add(
    (next) => (step) => {
      const { headers } = step.request as { headers: Record<string, string> };
      headers['x-amz-content-sha256'] = hash;
      return next(step);
    },
    { step: 'build' },
  );
  await client.send(command, { requestTimeout: 0 });
}

/**
 * The part of a blob that a reply contains, or that it contains as a part of the whole: stores may ignore ranges.
 *
 * @throws OtherContent if the reply says that it contains another part, or the whole of another length
 */
export function contentOfReply(reply: GetObjectCommandOutput, { bytes }: Blob, { start, end }: ByteRange): Readable {
  const { ContentRange: range, ContentLength: length = bytes, $metadata } = reply;
  // A stream, in Node.
  const body = reply.Body as unknown as Readable;
  if (range === `bytes ${start}-${end}/${bytes}`) return body;
  const isWhole = range === undefined && $metadata.httpStatusCode === 200 && length === bytes;
  if (isWhole) return start === 0 && end === bytes - 1 ? body : Readable.from(cut(body, start, end));
  body.on('error', () => undefined).destroy();
  const what = range ?? `${length} bytes with status ${$metadata.httpStatusCode}`;
  throw new OtherContent(`the reply has ${what} instead of bytes ${start}-${end}/${bytes}`);
}

async function* cut(content: Readable, start: number, end: number): AsyncGenerator<Uint8Array> {
  let position = 0;
  for await (const chunk of content as AsyncIterable<Uint8Array>) {
    const part = chunk.subarray(Math.max(0, start - position), Math.max(0, end + 1 - position));
    position += chunk.length;
    if (part.length > 0) yield part;
    if (position > end) return;
  }
}

interface S3Error extends Error {
  /** Of Node, if there was no reply. */
  readonly code?: string;
  /** Where the bucket is, if the store says so. */
  readonly Region?: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

export function nullIfNotFound(error: S3Error): null {
  if (error.$metadata?.httpStatusCode === 404 && error.name !== 'NoSuchBucket') return null;
  throw error;
}

/** The SDK calls these time-outs as well. */
const LOST = new Set(['ECONNRESET', 'EPIPE']);

/** Whether another attempt may succeed soon: the connection was lost, or the server has a problem. */
export function mayPass(error: unknown): boolean {
  const { name, code = '', $metadata } = error as S3Error;
  if (name === 'TimeoutError' && !LOST.has(code)) return false;
  const status = $metadata?.httpStatusCode ?? 0;
  // 307: the name of a new bucket is not known everywhere.
  return status === 0 || status >= 500 || status === 429 || status === 307;
}
