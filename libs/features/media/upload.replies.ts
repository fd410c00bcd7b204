import type { FastifyReply } from 'fastify';

import { sendJson } from '#libs/platform/http/index.ts';

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
