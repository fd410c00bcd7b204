import type * as Ai from 'ai';

import { FetchError } from '#libs/platform/fetch/index.ts';

import type { ModelFailure } from './model.ts';

export interface ModelLibrary {
  readonly ai: typeof Ai;
}

/** What an answer failed with, before it is a part. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly reason: ModelFailure['reason'];

  constructor(reason: ModelFailure['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

export interface Failed {
  readonly failure: ModelFailure;
  readonly isRetryable: boolean;
  /** What the endpoint asks to wait; null if it does not. */
  readonly retryAfterMs: number | null;
}

/** Of what an endpoint said. */
const MAX_DETAIL = 500;

export function failureOf(error: unknown, library: ModelLibrary): Failed {
  const given = (
    reason: ModelFailure['reason'],
    message: string,
    more: Partial<Omit<Failed, 'failure'>> = {},
  ): Failed => ({
    failure: { reason, message, detail: error instanceof Failure ? null : String(error).slice(0, MAX_DETAIL) },
    isRetryable: false,
    retryAfterMs: null,
    ...more,
  });
  if (error instanceof Failure) return given(error.reason, error.message);
  const fetchError = causeOf(error, (one) => one instanceof FetchError);
  if (fetchError !== null) return ofFetch(fetchError, given);
  const apiError = causeOf(error, library.ai.APICallError.isInstance);
  if (apiError?.statusCode === undefined || apiError.statusCode < 300) {
    return given('bad_response', 'the model gave an answer that is not valid');
  }
  return ofStatus(apiError.statusCode, apiError.responseHeaders ?? {}, given);
}

type Given = (reason: ModelFailure['reason'], message: string, more?: Partial<Omit<Failed, 'failure'>>) => Failed;

function ofFetch({ reason }: FetchError, given: Given): Failed {
  switch (reason) {
    case 'too_large':
      return given('too_large', 'the answer of the model is too long');
    case 'timeout':
      return given('timeout', 'the model did not answer in time', { isRetryable: true });
    case 'disconnected':
      return given('disconnected', 'the answer of the model broke off', { isRetryable: true });
    case 'bad_response':
    case 'decode_failed':
      return given('bad_response', 'the model gave an answer that is not valid');
    case 'connect_failed':
    case 'name_not_found':
    case 'tls_failed':
      return given('unavailable', 'the model cannot be reached', { isRetryable: true });
    default:
      return given('refused', 'the address of the model cannot be used');
  }
}

function ofStatus(status: number, headers: Readonly<Record<string, string>>, given: Given): Failed {
  const retryAfterMs = retryAfterOf(headers);
  if (status === 401 || status === 403) return given('unauthorized', 'the model does not accept the configured key');
  if (status === 429) {
    return given('rate_limited', 'the model is used too much at the moment', { isRetryable: true, retryAfterMs });
  }
  if (status >= 500 || status === 408 || status === 409) {
    return given('unavailable', 'the model is not available at the moment', { isRetryable: true, retryAfterMs });
  }
  return given('refused', `the model refused the request with the status ${status}`);
}

/** Seconds or a date (RFC 9110, 10.2.3), or `retry-after-ms`, which is more exact. */
function retryAfterOf(headers: Readonly<Record<string, string>>): number | null {
  const inMs = Number(headers['retry-after-ms'] ?? Number.NaN);
  if (Number.isFinite(inMs)) return Math.max(0, inMs);
  const given = headers['retry-after'];
  if (given === undefined) return null;
  const ms = /^\d+$/.test(given) ? Number(given) * 1_000 : Date.parse(given) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}

/** The error itself or one of its causes. Libraries wrap errors, also several times. */
function causeOf<T>(error: unknown, is: (one: unknown) => one is T): T | null {
  for (let one = error, depth = 0; one instanceof Error && depth < 8; one = one.cause, depth += 1) {
    if (is(one)) return one;
  }
  return null;
}
