/** Rules about the head of a request that hold for every path, and that neither Node nor Fastify enforces as JSON. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { MIMEType } from 'node:util';

import { HttpError } from './errors.ts';

/**
 * Fields of which Node keeps the first and drops the others. A proxy in front may use another one of them, so
 * the request would mean one thing there and another thing here.
 */
const SINGLE = ['Host', 'Authorization', 'Content-Type'];
/** By the length of the name: one look-up rules out most fields, and this runs for every request. */
const SINGLE_BY_LENGTH = new Map(
  SINGLE.map((name, index) => [name.length, { name, lower: name.toLowerCase(), bit: 1 << index }]),
);

/** The 400 for a head that RFC 9112 (3.2) does not allow, or that is ambiguous; undefined for all others. */
export function headFault({ rawHeaders, headers, httpVersion }: IncomingMessage): HttpError | undefined {
  if (headers.host === undefined && httpVersion === '1.1') return badHead('The header Host is missing');
  let seen = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const field = rawHeaders[at] ?? '';
    const single = SINGLE_BY_LENGTH.get(field.length);
    if (single === undefined || field.toLowerCase() !== single.lower) continue;
    if ((seen & single.bit) !== 0) return badHead(`The header ${single.name} is given more than once`);
    seen |= single.bit;
  }
  return undefined;
}

function badHead(detail: string): HttpError {
  return new HttpError(400, 'bad_request', detail);
}

/** `checkExpectation` of Node's server: 417 for any `Expect` but `100-continue`. The body is not read. */
export function refuseExpectation(_request: IncomingMessage, response: ServerResponse): void {
  const body = JSON.stringify({ detail: 'Expect may only be 100-continue', code: 'expectation_failed' });
  response.writeHead(417, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  });
  response.end(body);
}

/** @throws HttpError 415 for a body in another encoding or charset than plain UTF-8 */
export function requirePlainJson(headers: IncomingMessage['headers']): void {
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw unsupported('A body must not be compressed (Content-Encoding)', { 'accept-encoding': 'identity' });
  }
  const type = headers['content-type'] ?? '';
  const charset = type.includes(';') ? new MIMEType(type).params.get('charset') : null;
  if (charset !== null && charset.toLowerCase() !== 'utf-8') {
    throw unsupported('The charset of a body must be utf-8');
  }
}

function unsupported(detail: string, headers?: Record<string, string>): HttpError {
  return new HttpError(415, 'unsupported_media_type', detail, headers);
}
