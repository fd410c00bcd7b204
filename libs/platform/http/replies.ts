import { isAscii } from 'node:buffer';
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { HttpError, JSON_TYPE } from './errors.ts';
import type { PageMeta } from './paging.ts';

/** Longer text costs more to encode than it saves, and so does text that is not ASCII. */
const MAX_TEXT_BYTES = 2_048;

/**
 * Sends serialized JSON, such as the bytes of a document. Short ASCII is sent as text: Node writes it in one piece with
 * the head, and bytes as a second piece, which takes about 1 µs of processor time more.
 */
export function sendJson(reply: FastifyReply, json: Buffer | string): FastifyReply {
  const isText = typeof json !== 'string' && json.length <= MAX_TEXT_BYTES && isAscii(json);
  return reply.header('content-type', JSON_TYPE).send(isText ? json.toString('latin1') : json);
}

const OPEN = Buffer.from('{"items":[');
const COMMA = Buffer.from(',');

/** A page that is sent repeatedly: its body, with the `meta` that it was last sent with. */
export interface SentPage {
  meta: string;
  body: Buffer | null;
}

/**
 * Sends a page of serialized items.
 *
 * @param sent kept with the items by callers that send them again: a large body is not put together for each reply
 */
export function sendPage(reply: FastifyReply, items: readonly Buffer[], meta: PageMeta, sent?: SentPage): FastifyReply {
  const metaJson = JSON.stringify(meta);
  if (sent?.body && sent.meta === metaJson) return sendJson(reply, sent.body);
  const parts: Buffer[] = [OPEN];
  for (const [index, item] of items.entries()) parts.push(...(index === 0 ? [item] : [COMMA, item]));
  parts.push(Buffer.from(`],"meta":${metaJson}}`));
  const body = Buffer.concat(parts);
  if (sent) Object.assign(sent, { meta: metaJson, body });
  return sendJson(reply, body);
}

/** The strong entity tag of an entity at a stream revision: `"12"`. */
export function etagOf(revision: number): string {
  return `"${revision}"`;
}

/** The condition of `If-Match`: `*`, or a list of entity tags. Weak tags never match (RFC 9110, 13.1.1). */
export function ifMatchOf(request: FastifyRequest): CommandContext['ifMatch'] {
  const header = request.headers['if-match'];
  if (header === undefined) return undefined;
  const tags = entityTags(header);
  return { allows: (revision) => tags === '*' || tags.includes(etagOf(revision)) };
}

/**
 * `preHandler` for commands on resources without an ETag, which no condition matches (RFC 9110, 13.1.1). Commands
 * whose runner checks `ifMatch` do not need it: no condition matches an entity that does not exist.
 *
 * @throws HttpError 412 for any `If-Match`
 */
export function refuseIfMatch(request: FastifyRequest, _reply: FastifyReply, done: HookHandlerDoneFunction): void {
  if (request.headers['if-match'] !== undefined) {
    throw new HttpError(412, 'precondition_failed', 'There is no ETag that If-Match could name');
  }
  done();
}

/**
 * Sets `ETag`, and answers 304 if `If-None-Match` contains it (weak tags compare equal there).
 * @returns true when the reply has been sent
 */
export function notModified(request: FastifyRequest, reply: FastifyReply, revision: number): boolean {
  const etag = etagOf(revision);
  void reply.header('etag', etag);
  const header = request.headers['if-none-match'];
  if (header === undefined) return false;
  const tags = entityTags(header);
  if (tags !== '*' && !tags.some((tag) => tag === etag || tag === `W/${etag}`)) return false;
  void reply.code(304).send();
  return true;
}

/** Matches the list instead of splitting it, because a tag may contain commas. */
function entityTags(header: string): '*' | string[] {
  if (header.trim() === '*') return '*';
  return header.match(/(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g) ?? [];
}
