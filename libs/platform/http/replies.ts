import type { FastifyReply } from 'fastify';
import { JSON_TYPE } from './errors.ts';
import type { PageMeta } from './paging.ts';

/** Sends JSON that is ready: bytes from a read model, untouched. */
export function sendJson(reply: FastifyReply, json: Buffer | string): FastifyReply {
  return reply.header('content-type', JSON_TYPE).send(json);
}

const OPEN = Buffer.from('{"items":[');
const COMMA = Buffer.from(',');

/** Sends a page whose items are JSON that is ready; only `meta` is written here. */
export function sendPage(reply: FastifyReply, items: readonly Buffer[], meta: PageMeta): FastifyReply {
  const parts: Buffer[] = [OPEN];
  for (const [index, item] of items.entries()) parts.push(...(index === 0 ? [item] : [COMMA, item]));
  parts.push(Buffer.from(`],"meta":${JSON.stringify(meta)}}`));
  return sendJson(reply, Buffer.concat(parts));
}
