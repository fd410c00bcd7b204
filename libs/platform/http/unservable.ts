/** Requests that are refused whatever their path: ambiguous heads, unknown paths and methods, broken requests. */
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { isBodyArriving } from './arriving-body.ts';
import { ANSWERS, HttpError, notFound } from './errors.ts';
import type { Limiters } from './rate-limits.ts';
import { endBeforeBody, endConnection, isDiscarding } from './refused-body.ts';
import { beginReply } from './request-context.ts';
import type { HttpApp } from './server-options.ts';

/**
 * The methods that a path supports, for 405 with `Allow`. Fastify's router only reports "no route"; this looks the
 * path up again, off the hot path.
 */
export class AllowedMethods {
  readonly #routes = new Map<string, { matches: RegExp; methods: Set<string> }>();

  add(method: string, pattern: string): void {
    const known = this.#routes.get(pattern) ?? { matches: matcherOf(pattern), methods: new Set<string>() };
    known.methods.add(method);
    this.#routes.set(pattern, known);
  }

  /** Methods of the routes that match the path of `url`, of one without parameters alone; empty when there are none. */
  of(url: string): string[] {
    const path = url.split(/[?#;]/, 1)[0] ?? '';
    const literal = this.#routes.get(path);
    const found = literal ? [literal] : [...this.#routes.values()].filter(({ matches }) => matches.test(path));
    return [...new Set(found.flatMap(({ methods }) => [...methods]))].sort();
  }
}

/** Supports parameters (`:id`) and a trailing wildcard; no route uses more. */
function matcherOf(pattern: string): RegExp {
  const source = pattern
    .split('/')
    .map((part) => (part.startsWith(':') ? '[^/]+' : part === '*' ? '.*' : part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')))
    .join('/');
  return new RegExp(`^${source}$`);
}

/**
 * Fields of which Node keeps the first and drops the others. A proxy may use another one of them, and so read a
 * different request than this server.
 */
const SINGLE = ['Host', 'Authorization', 'Content-Type'];
/** By length of the name, which rules out most fields with one look-up: this runs for every request. */
const SINGLE_BY_LENGTH = new Map(
  SINGLE.map((name, index) => [name.length, { name, lower: name.toLowerCase(), bit: 1 << index }]),
);

/** The 400 for a head that RFC 9112 (3.2) forbids or that is ambiguous; undefined for a valid one. */
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

/** `checkExpectation` of Node's server: 417 for any `Expect` but `100-continue`. @param closing aborted when the server stops */
export function refuseExpectation(closing: AbortSignal, request: IncomingMessage, response: ServerResponse): void {
  const body = JSON.stringify({ detail: 'Expect may only be 100-continue', code: 'expectation_failed' });
  response.writeHead(417, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  });
  endBeforeBody(request, closing, response, body);
}

/**
 * Refuses requests that no route serves, before their body is read: 400 for an ambiguous head, 404, or 405 where the
 * path exists. They count towards the limit per address, which bounds scans.
 */
export function refuseUnservable(app: HttpApp, allowed: AllowedMethods, { perAddress }: Limiters): void {
  app.addHook('onRequest', (request, reply, done) => {
    const fault = headFault(request.raw);
    if (fault === undefined && !request.is404) return done();
    beginReply(request, reply);
    perAddress?.(request, reply);
    throw fault ?? noSuchRoute(allowed, request.url);
  });
}

export function noSuchRoute(allowed: AllowedMethods, url: string): HttpError {
  const methods = allowed.of(url);
  if (methods.length === 0) return notFound();
  return new HttpError(405, 'method_not_allowed', 'Method Not Allowed', { allow: methods.join(', ') });
}

const BROKEN = new Map<string | undefined, 408 | 431>([
  ['HPE_HEADER_OVERFLOW', 431],
  ['ERR_HTTP_REQUEST_TIMEOUT', 408],
]);

/** Answers bytes that Node could not parse as a request. There is no Fastify reply, so this writes to the socket. */
export function answerBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed || isDiscarding(socket)) return;
  // Node reports each late request once, and leaves the connection to its listener.
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && isBodyArriving(socket)) return;
  const status = BROKEN.get(error.code) ?? 400;
  const { code, detail } = ANSWERS[status];
  const body = JSON.stringify({ detail, code });
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`;
  if (!socket.writable) return void socket.destroy(error);
  endConnection(socket, `${head}connection: close\r\n\r\n${body}`);
}
