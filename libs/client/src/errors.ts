import type { ErrorFrame } from './frames.ts';

/** Base of all errors that the client throws; `code` is for programs. */
export class ParleyError extends Error {
  override readonly name: string = 'ParleyError';
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A REST call was refused. */
export class ApiError extends ParleyError {
  override readonly name = 'ApiError';
  readonly status: number;
  /** Seconds after which a retry may succeed; null if the server gave none. */
  readonly retryAfter: number | null;
  /** Id of the request, for the operator of the server. */
  readonly requestId: string | null;
  readonly #isParleys: boolean;

  /** @param answer `isParleys`: whether Parley refuses, and not a proxy on the way to it; default: true */
  constructor(answer: {
    readonly status: number;
    readonly code: string;
    readonly detail: string;
    readonly retryAfter?: number | null;
    readonly requestId?: string | null;
    readonly isParleys?: boolean;
  }) {
    super(answer.code, answer.detail);
    this.status = answer.status;
    this.retryAfter = answer.retryAfter ?? null;
    this.requestId = answer.requestId ?? null;
    this.#isParleys = answer.isParleys ?? true;
  }

  /** Whether a retry may succeed: whatever is not Parley's own refusal passes. */
  get passing(): boolean {
    return !this.#isParleys || this.status >= 500 || this.status === 408 || this.status === 425 || this.status === 429;
  }
}

export type SubscriptionErrorCode =
  /** The key was revoked, the user was removed, or access to the channel was never granted. */
  | 'access_lost'
  /** The channel is archived: it gets no more events. */
  | 'channel_gone'
  /** The events after the cursor were deleted in the event store; the message names the first one that is left. */
  | 'events_gone'
  /** The server does not speak `parley.v1`. */
  | 'unknown_version'
  /** The server refused what this client sent, such as a cursor beyond the end of the channel. */
  | 'protocol_error'
  /** Two fresh tickets in a row were refused: the page's origin is not allowed, or a proxy replays requests. */
  | 'ticket_refused'
  /** The request for a ticket was refused. `cause` is the `ApiError`. */
  | 'no_ticket'
  /** This runtime has no WebSocket, and none was passed. */
  | 'no_websocket';

/** A subscription has ended and does not reconnect. */
export class SubscriptionError extends ParleyError {
  override readonly name = 'SubscriptionError';
  declare readonly code: SubscriptionErrorCode;
  /** Close code of the websocket; null without one. */
  readonly closeCode: number | null;

  constructor(code: SubscriptionErrorCode, message: string, closeCode: number | null = null, cause?: unknown) {
    super(code, message, cause === undefined ? undefined : { cause });
    this.closeCode = closeCode;
  }
}

/** A command was refused, or the subscription ended before the acknowledgement. */
export class CommandError extends ParleyError {
  override readonly name = 'CommandError';
  /** Seconds after which a retry may succeed; null if the server gave none. */
  readonly retryAfter: number | null;
  /** Validation errors, as in replies of the REST API. */
  readonly faults: readonly unknown[];

  constructor(code: string, message: string, more: { retryAfter?: number | null; faults?: readonly unknown[] } = {}) {
    super(code, message);
    this.retryAfter = more.retryAfter ?? null;
    this.faults = more.faults ?? [];
  }
}

/** The error of a subscription whose user was refused by Parley itself; null for other refusals. */
export function refusedAccess(error: ApiError): SubscriptionError | null {
  const isAccess = [401, 403, 404].includes(error.status) && !error.passing;
  return isAccess ? new SubscriptionError('access_lost', error.message, null, error) : null;
}

/**
 * The error of a reply that is not a success.
 *
 * @param body `error` of `openapi-fetch`
 */
export function refusalOf(response: Response, body: unknown): ApiError {
  const { detail, code, request_id: requestId } = membersOf(body);
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  const isDetail = typeof detail === 'string' || Array.isArray(detail);
  return new ApiError({
    status: response.status,
    code: typeof code === 'string' ? code : response.status === 422 ? 'validation_error' : `http_${response.status}`,
    detail: isDetail ? sentenceOf(detail) : `the server answered ${response.status}`,
    retryAfter: Number.isFinite(retryAfter) ? retryAfter : null,
    requestId: typeof requestId === 'string' ? requestId : null,
    isParleys: typeof code === 'string' || (response.status === 422 && Array.isArray(detail)),
  });
}

function membersOf(body: unknown): { detail?: unknown; code?: unknown; request_id?: unknown } {
  return typeof body === 'object' && body !== null ? body : {};
}

/** The detail of an error as one line: validation errors are joined. */
export function sentenceOf(detail: ErrorFrame['detail']): string {
  return typeof detail === 'string' ? detail : detail.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; ');
}
