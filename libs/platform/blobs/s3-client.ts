import type { S3 } from '@aws-sdk/client-s3';

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
}

const CONNECT_MS = 1_500;
/** Without a byte in either direction. This also ends replies to clients that stop reading; they resume with a range. */
const IDLE_MS = 15_000;
const MAX_CONNECTIONS = 500;
const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Loads the SDK, which takes memory that a Parley without S3 does not need. */
export async function connectS3({
  endpoint,
  region,
  isPathStyle,
  credentials,
  replyMs = 2_000,
}: S3Options): Promise<S3> {
  const { S3 } = await import('@aws-sdk/client-s3');
  return new S3({
    region,
    forcePathStyle: isPathStyle,
    ...(endpoint !== null && { endpoint }),
    ...(credentials !== null && { credentials }),
    maxAttempts: 2,
    // Errors are reported where they are handled.
    logger: SILENT,
    // Stores other than AWS refuse checksums that they do not know.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    expectContinueHeader: false,
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      requestTimeout: replyMs,
      throwOnRequestTimeout: true,
      socketTimeout: IDLE_MS,
      httpAgent: { maxSockets: MAX_CONNECTIONS },
      httpsAgent: { maxSockets: MAX_CONNECTIONS },
    },
  });
}

interface S3Error extends Error {
  readonly $metadata?: { readonly httpStatusCode?: number };
}

export function nullIfNotFound(error: S3Error): null {
  if (error.$metadata?.httpStatusCode === 404 && error.name !== 'NoSuchBucket') return null;
  throw error;
}

/** Whether another attempt may succeed soon: the connection was lost, or the server has a problem. */
export function mayPass(error: unknown): boolean {
  const { name, $metadata } = error as S3Error;
  const status = $metadata?.httpStatusCode ?? 0;
  return name !== 'TimeoutError' && (status === 0 || status >= 500 || status === 429);
}
