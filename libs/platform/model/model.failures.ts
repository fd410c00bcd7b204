import { isObject, type JsonObject, parsedJson } from '#libs/kernel/json.ts';
import { admitText } from '#libs/kernel/text.ts';
import { FetchError, retryAfterMs } from '#libs/platform/fetch/index.ts';

import type { ModelFailure } from './model.ts';

/** The reason of a failed answer, before it is a part. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly reason: ModelFailure['reason'];

  constructor(reason: ModelFailure['reason'], message: string, detail?: string) {
    super(message, { cause: detail });
    this.reason = reason;
  }
}

/** A reply of an endpoint in the place of an answer: with a status, or in a stream that stands for it. */
export class EndpointError extends Error {
  override readonly name = 'EndpointError';
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  /** JSON, or any text. */
  readonly body: unknown;

  constructor(status: number, headers: ReadonlyMap<string, string>, text: string) {
    super(text);
    this.status = status;
    this.headers = headers;
    this.body = parsedJson(text) ?? text;
  }
}

export interface Failed {
  readonly failure: ModelFailure;
  readonly isRetryable: boolean;
  /** The wait that the endpoint asks for; null if it does not. */
  readonly retryAfterMs: number | null;
}

/** Of what an endpoint said. */
const MAX_DETAIL = 1_000;

export function failureOf(error: unknown): Failed {
  if (error instanceof EndpointError) return ofStatus(error);
  const given: Given = (reason, message, isRetryable = false, detail = String(error)) => ({
    failure: { reason, message, detail: detail && admitText(detail, MAX_DETAIL) },
    isRetryable,
    retryAfterMs: null,
  });
  if (error instanceof Failure) {
    return given(error.reason, error.message, false, typeof error.cause === 'string' ? error.cause : null);
  }
  if (error instanceof FetchError) return ofFetch(error, given);
  return given('bad_response', INVALID);
}

const INVALID = 'the model gave an answer that is not valid';

type Given = (
  reason: ModelFailure['reason'],
  message: string,
  isRetryable?: boolean,
  /** Default: the error. */
  detail?: string | null,
) => Failed;

function ofFetch({ reason }: FetchError, given: Given): Failed {
  switch (reason) {
    case 'too_large':
      return given('too_large', 'the answer of the model is too long');
    case 'timeout':
      return given('timeout', 'the model did not answer in time', true);
    case 'disconnected':
      return given('disconnected', 'the answer of the model broke off', true);
    case 'bad_response':
    case 'decode_failed':
      return given('bad_response', INVALID);
    case 'connect_failed':
    case 'name_not_found':
    case 'tls_failed':
      return given('unavailable', 'the model cannot be reached', true);
    default:
      return given('refused', 'the address of the model cannot be used');
  }
}

function ofStatus(error: EndpointError): Failed {
  const { status, headers } = error;
  const sentence = sentenceOf(error);
  const given = (reason: ModelFailure['reason'], message: string, isRetryable = false): Failed => ({
    failure: { reason, message, detail: admitText(`status ${status}: ${sentence}`, MAX_DETAIL) },
    isRetryable,
    retryAfterMs: retryAfterMs(headers),
  });
  if (status === 401 || status === 403) return given('unauthorized', 'the model does not accept the configured key');
  if (status === 429) {
    return given('rate_limited', 'the model is used too much at the moment', !/insufficient_quota/.test(error.message));
  }
  if (status >= 500 || status === 408 || status === 409) {
    return given('unavailable', 'the model is not available at the moment', true);
  }
  return given('refused', `the model refused the request with the status ${status}`);
}

/** The sentence of an error, wherever endpoints put it; else all that they said. */
export function sentenceOf({ body, message }: Pick<EndpointError, 'body' | 'message'>): string {
  const sentences = [...new Set(sentencesIn(body))];
  return sentences.length === 0 ? message.trim() : sentences.join(' ');
}

const SENTENCES = [
  'message',
  'msg',
  'detail',
  'details',
  'error',
  'errors',
  'raw',
  'metadata',
  'reason',
  'description',
];

/** Also of JSON within a text, which proxies pass on. Places of a fault (`loc`) and its input are no sentences. */
function sentencesIn(value: unknown, depth = 0): string[] {
  if (depth > 6) return [];
  if (typeof value === 'string') {
    const inner = value.trimStart().startsWith('{') ? parsedJson(value) : undefined;
    const found = inner === undefined ? [] : sentencesIn(inner, depth + 1);
    return found.length > 0 ? found : value.trim() === '' ? [] : [value.trim()];
  }
  if (Array.isArray(value)) return value.slice(0, 20).flatMap((one) => sentencesIn(one, depth + 1));
  if (!isObject(value)) return [];
  return SENTENCES.flatMap((name) => sentencesIn(value[name], depth + 1));
}

const STATUSES: readonly (readonly [RegExp, number])[] = [
  [/rate.?limit|too.?many.?requests|resource.?exhausted|throttl|quota/, 429],
  [/overload|unavailable|capacity|busy|timeout|timed out/, 503],
  [/unauthori[sz]ed|authentication|api.?key|permission.?denied/, 401],
  [/invalid.?request|bad.?request|invalid.?argument|unsupported|context.?length|not.?supported|unprocessable/, 400],
];

/** The status that an error in a stream stands for: it names one, or says in words what it is. Default: 500. */
export function statusOfError(chunk: JsonObject): number {
  const error = isObject(chunk['error']) ? chunk['error'] : chunk;
  const codes = [
    error['code'],
    error['status'],
    error['status_code'],
    error['http_code'],
    chunk['status'],
    chunk['code'],
  ];
  for (const code of codes) {
    const status = Number(typeof code === 'string' || typeof code === 'number' ? code : Number.NaN);
    if (Number.isInteger(status) && status >= 400 && status < 600) return status;
  }
  const words = [...codes, error['type'], chunk['error'], error['message'], chunk['message'], chunk['detail']];
  for (const word of words) {
    if (typeof word !== 'string') continue;
    const known = STATUSES.find(([pattern]) => pattern.test(word.toLowerCase()));
    if (known !== undefined) return known[1];
  }
  return 500;
}
