import { z } from 'zod';
import type { FastifyReply } from 'fastify';
import { idParam, queryInteger, shownTime, conflict, HttpError, sendJson } from '#libs/platform/http/index.ts';
import type { ExceededQuota } from './upload-quota.ts';
import type { Upload } from './uploads.ts';

/** The bytes of a file. */
export const fileBody = z
  .unknown()
  .meta({ type: 'string', format: 'binary', description: 'The file: at most 100 MiB' });

export const uploadParams = z.object({ id: idParam('Id of the upload, and of the media item that it becomes') });

/** `Content-Type` of the parts of a resumable upload. */
export const PART_TYPE = 'application/offset+octet-stream';

const tusResumable = z.string().optional().describe('`1.0.0`');

export const postHeaders = z.object({
  'tus-resumable': tusResumable,
  'upload-length': queryInteger({
    min: 1,
    description: 'Begins a resumable upload of so many bytes: at most 100 MiB',
  }).optional(),
  'upload-metadata': z
    .string()
    .optional()
    .describe('Of a resumable upload: its `filename` is the name of the item if the query has none'),
});

export const patchHeaders = z.object({
  'tus-resumable': tusResumable,
  'upload-offset': queryInteger({ min: 0, description: 'Bytes of the upload that have arrived before' }),
});

export const uploadSchema = z
  .object({
    id: z.string().describe('Id of the upload, and of the media item that it becomes'),
    offset: z.int().describe('Bytes that have arrived; also in `Upload-Offset`'),
    length: z.int().describe('Bytes of the whole file; also in `Upload-Length`'),
    expires_at: shownTime().describe('Time until which the upload can be continued; also in `Upload-Expires`'),
  })
  .meta({ id: 'MediaUpload' });

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
