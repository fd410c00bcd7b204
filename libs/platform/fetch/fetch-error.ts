import { codeOf } from '#libs/kernel/faults.ts';

/** Why a fetch failed. Part of what users read, so a reason keeps its name. */
export type FetchFailure =
  | 'invalid_url'
  | 'scheme_refused'
  | 'userinfo_refused'
  | 'port_refused'
  | 'address_refused'
  | 'name_not_found'
  | 'connect_failed'
  | 'tls_failed'
  | 'timeout'
  | 'too_slow'
  | 'too_large'
  | 'too_many_redirects'
  | 'redirect_loop'
  | 'disconnected'
  | 'bad_response'
  | 'decode_failed';

/** The message is a sentence for users. It names no address that a name resolved to. */
export class FetchError extends Error {
  override readonly name = 'FetchError';
  readonly reason: FetchFailure;
  /** The URL that failed: after redirects, not the first one. */
  readonly url: string;
  /** Of the body, as far as they had arrived. */
  bytes = 0;

  constructor(reason: FetchFailure, url: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.reason = reason;
    this.url = url;
  }
}

/** A failure below the request: of a connection that several requests may wait for, or of a body. */
export class TransferError extends Error {
  override readonly name = 'TransferError';
  readonly reason: FetchFailure;

  constructor(reason: FetchFailure, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.reason = reason;
  }
}

/**
 * What a request or the reading of its body failed with.
 *
 * @returns a FetchError; what is no failure of a fetch (the abort reason of the caller, a bug) is returned as it is
 */
export function fetchErrorOf(error: Error, url: string): Error {
  if (error instanceof TransferError) return new FetchError(error.reason, url, error.message, error.cause);
  if (error instanceof FetchError) return error;
  const code = String(codeOf(error) ?? '');
  if (error.name === 'HTTPParserError' || BAD_RESPONSES.has(code)) {
    return new FetchError('bad_response', url, 'the server sent a response that is not valid HTTP', error);
  }
  if (code === 'UND_ERR_HEADERS_OVERFLOW') {
    return new FetchError('bad_response', url, 'the headers of the response are too large', error);
  }
  if (error.name === 'MaxOriginsReachedError') {
    return new FetchError('connect_failed', url, 'connections to too many servers are open', error);
  }
  if (isDisconnection(error)) {
    return new FetchError('disconnected', url, 'the server closed the connection before the response ended', error);
  }
  return error;
}

const BAD_RESPONSES = new Set(['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'UND_ERR_INFO']);

/** Whether a connection that was there ended too soon; a connection that was not reached is a `TransferError`. */
export function isDisconnection(error: unknown): boolean {
  return DISCONNECTIONS.has(String(codeOf(error) ?? ''));
}

const DISCONNECTIONS = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ECONNABORTED', 'EPROTO']);
