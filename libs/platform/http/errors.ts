import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { Fault, StreamGone } from '#libs/kernel/faults.ts';
import { redacted } from '#libs/kernel/secrets.ts';
import { sendBeforeBody } from './refused-body.ts';
import type { ValidationError } from './validation/pydantic-errors.ts';

/**
 * An error answer of a route. The caller sees `detail` and `code`: they never contain data of another organization or
 * internals.
 */
export class HttpError extends Error {
  readonly status: number;
  readonly code: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Further members of the body. */
  readonly members: Readonly<Record<string, unknown>>;

  constructor(
    status: number,
    code: string,
    detail: string,
    headers: Record<string, string> = {},
    members: Readonly<Record<string, unknown>> = {},
  ) {
    super(detail);
    this.name = 'HttpError';
    this.status = status;
    this.code = code;
    this.headers = headers;
    this.members = members;
  }
}

/** 422: invalid input. `errors` are sent unchanged, in the format of pydantic 2. */
export class ValidationFailure extends Error {
  readonly status = 422;
  readonly errors: readonly ValidationError[];

  constructor(errors: readonly ValidationError[]) {
    super('The input is invalid');
    this.name = 'ValidationFailure';
    this.errors = errors;
  }
}

/**
 * The same bytes for an entity that is absent and one of another organization, so the body contains neither the
 * request id (see `x-request-id`) nor the kind of entity.
 */
const NOT_FOUND_BODY = Buffer.from('{"detail":"Not Found","code":"not_found"}');

export const unauthorized = (): HttpError =>
  new HttpError(401, 'not_authenticated', 'Not authenticated', { 'www-authenticate': 'Bearer realm="parley"' });
export const forbidden = (detail: string, code = 'forbidden'): HttpError => new HttpError(403, code, detail);
export const notFound = (): HttpError => new HttpError(404, 'not_found', 'Not Found');
/** @param members further members of the body, which help the caller to resolve the conflict */
export const conflict = (
  detail: string,
  code = 'conflict',
  headers?: Record<string, string>,
  members?: Readonly<Record<string, unknown>>,
): HttpError => new HttpError(409, code, detail, headers, members);
export const tooManyRequests = (retryAfterSeconds: number): HttpError =>
  new HttpError(429, 'rate_limited', 'Too many requests', { 'retry-after': String(retryAfterSeconds) });

export const tookTooLong = (): HttpError =>
  new HttpError(503, 'timeout', 'The answer took too long', { 'retry-after': '2' });

/** 422 for a single field that only the route can validate (`loc` as in `['body', 'url']`). */
export function invalid(
  loc: readonly (string | number)[],
  message: string,
  input: unknown,
  type = 'value_error',
): ValidationFailure {
  const error: ValidationError =
    type === 'value_error'
      ? { type, loc: [...loc], msg: `Value error, ${message}`, input, ctx: { error: {} } }
      : { type, loc: [...loc], msg: message, input };
  return new ValidationFailure([error]);
}

/** As {@link invalid}, for a member of a body, which is quoted as the input. */
export function invalidBody(body: unknown, name: string, message: string): ValidationFailure {
  const input: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, name) : null;
  return invalid(['body', name], message, input);
}

/** The answer to an error other than `ValidationFailure`. */
interface Answer {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly members?: Readonly<Record<string, unknown>>;
}

const INTERNAL: Answer = { status: 500, code: 'internal', detail: 'Internal Server Error' };

/** Answers to errors of Fastify and its plugins. */
export const ANSWERS = {
  400: { status: 400, code: 'bad_request', detail: 'The request cannot be read' },
  408: { status: 408, code: 'request_timeout', detail: 'The request did not arrive in time' },
  413: { status: 413, code: 'body_too_large', detail: 'The body is larger than allowed' },
  414: { status: 414, code: 'uri_too_long', detail: 'The URL is longer than allowed' },
  415: { status: 415, code: 'unsupported_media_type', detail: 'Content-Type must be application/json' },
  431: { status: 431, code: 'headers_too_large', detail: 'The headers are larger than allowed' },
} satisfies Record<number, Answer>;

/** Unknown errors are bugs: answers 500 without details. */
export function answerOf(error: FastifyError | Error): Answer {
  if (error instanceof HttpError) return { ...error, detail: redacted(error.message) };
  if (error instanceof Fault) {
    const headers =
      error.status === 503 || error.retryAfterSeconds !== undefined
        ? { 'retry-after': String(error.retryAfterSeconds ?? 1) }
        : {};
    const members = error instanceof StreamGone ? { first_sequence: error.firstSequence } : {};
    return { status: error.status, code: error.code, detail: redacted(error.message), headers, members };
  }
  const { statusCode } = error as Partial<FastifyError>;
  return (ANSWERS as Partial<Record<number, Answer>>)[statusCode ?? 500] ?? INTERNAL;
}

/** Fastify's error handler: answers any error by the error table of the API. */
export function replyWithError(error: FastifyError | Error, request: FastifyRequest, reply: FastifyReply): void {
  if (error instanceof ValidationFailure) {
    return sendBeforeBody(request, reply.code(422).type(JSON_TYPE), validationBody(error.errors));
  }
  const answer = answerOf(error);
  if (answer.status >= 500) {
    const level = answer.status === 500 ? 'error' : 'warn';
    request.log[level](
      // The pattern of the route, never the URL: a URL may carry a ticket.
      { err: error, request_id: request.id, method: request.method, route: request.routeOptions.url ?? 'none' },
      'request failed',
    );
  }
  if (answer.headers) void reply.headers(answer.headers);
  if (answer.status === 404) {
    return sendBeforeBody(request, reply.code(404).type(JSON_TYPE), NOT_FOUND_BODY);
  }
  const { detail, code, members } = answer;
  const body = JSON.stringify({ detail, code, ...members, request_id: request.id });
  sendBeforeBody(request, reply.code(answer.status).type(JSON_TYPE), Buffer.from(body));
}

export const JSON_TYPE = 'application/json; charset=utf-8';

/** Maximum of errors in an answer. */
export const MAX_ERRORS = 100;
const MAX_INPUT_BYTES = 16 * 1024;

/** Bounds the echo of a hostile body: 100 errors, 16 KiB for each `input`. */
function validationBody(errors: readonly ValidationError[]): Buffer {
  const detail = errors.slice(0, MAX_ERRORS).map((error) => {
    const size = JSON.stringify(error.input)?.length ?? 0;
    if (size <= MAX_INPUT_BYTES) return error;
    const { input: _omitted, ...rest } = error;
    return rest;
  });
  return Buffer.from(JSON.stringify({ detail }));
}
