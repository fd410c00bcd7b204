import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify';

import { HttpError } from './errors.ts';

/** The strong entity tag of an entity at a stream revision: `"12"`. */
export function etagOf(revision: number): string {
  return `"${revision}"`;
}

/**
 * What `If-Match` demands. `allows` says whether a command may run against a revision; a command
 * handler asks it for the very revision that it decides on, so that nothing slips in between.
 */
export interface IfMatch {
  allows(revision: number): boolean;
}

const ANY: IfMatch = { allows: () => true };

/** Reads `If-Match`: `*`, or a list of entity tags. Weak tags never match (RFC 9110, 13.1.1). */
export function ifMatchOf(request: FastifyRequest): IfMatch | undefined {
  const header = request.headers['if-match'];
  if (header === undefined) return undefined;
  const tags = entityTags(header);
  return tags === '*' ? ANY : { allows: (revision) => tags.includes(etagOf(revision)) };
}

/**
 * `preHandler` of a command on something without an ETag, which no condition can match (RFC 9110, 13.1.1). A
 * command whose runner honours `ifMatch` needs none: no condition matches an entity that does not exist.
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
 * Sets `ETag`, and answers 304 when `If-None-Match` names it (there, weak tags compare equal).
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

/** An opaque tag may hold commas, so a list is matched, not split. */
function entityTags(header: string): '*' | string[] {
  if (header.trim() === '*') return '*';
  return header.match(/(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g) ?? [];
}
