/** How the routes of uploads answer and refuse. */
import type { FastifyReply } from 'fastify';

import { conflict, HttpError, sendJson } from '#libs/platform/http/index.ts';

import type { ExceededQuota } from './upload-quota.ts';
import type { Upload } from './uploads.ts';

/** How much of an upload has arrived, in the body and in the headers of tus. */
export function sendState(reply: FastifyReply, upload: Upload): FastifyReply {
  const { id, offset, length, expiresAtMs } = upload;
  const state = { id, offset, length, expires_at: new Date(expiresAtMs).toISOString() };
  return sendJson(sendStateHeaders(reply, upload), JSON.stringify(state));
}

export function sendStateHeaders(reply: FastifyReply, { offset, length, expiresAtMs, metadata }: Upload): FastifyReply {
  return reply.headers({
    'upload-offset': offset,
    'upload-length': length,
    'upload-expires': new Date(expiresAtMs).toUTCString(),
    ...(metadata !== null && { 'upload-metadata': metadata }),
    'cache-control': 'no-store',
  });
}

export const tooLarge = (detail = 'A file has at most 100 MiB'): HttpError =>
  new HttpError(413, 'body_too_large', detail);

/** A single upload that is larger than the whole quota never fits: 413. */
export function quotaExceeded({ of, what, limit }: ExceededQuota, bytes: number): HttpError {
  const whose = of === 'key' ? 'this key' : 'the organization';
  if (what === 'count') {
    const detail = `At most ${limit} resumable uploads of ${whose} may be incomplete: complete or cancel some`;
    return new HttpError(429, 'too_many_uploads', detail, { 'retry-after': '60' });
  }
  const mib = Math.floor(limit / 1024 / 1024);
  if (bytes > limit) return tooLarge(`Resumable uploads of ${whose} have at most ${mib} MiB`);
  const detail = `Incomplete resumable uploads of ${whose} have at most ${mib} MiB together: complete or cancel some`;
  return new HttpError(429, 'upload_quota', detail, { 'retry-after': '60' });
}

export function otherOffset(offset?: number): HttpError {
  const detail = 'The upload is not at this offset: read it again';
  return conflict(detail, 'upload_offset', offset === undefined ? {} : { 'upload-offset': `${offset}` });
}
