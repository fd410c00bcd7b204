import {
  AccessDeniedError,
  DeadlineExceededError,
  isCommandError,
  MaxAppendSizeExceededError,
  NotLeaderError,
  StreamDeletedError,
  StreamNotFoundError,
  UnknownError,
  WrongExpectedVersionError,
} from '@eventstore/db-client';
import { Fault, outcomeUnknown, storeUnavailable } from '#libs/kernel/faults.ts';

/** gRPC status codes, by the names that gRPC gives them. */
const UNAVAILABLE = 14;
const CANCELLED = 1;

/**
 * What gRPC says of a call that never reached a connection. Everything else that ends an append may
 * have happened after the server had it.
 */
const NEVER_SENT = /No connection established|Channel closed before call started|Name resolution failed|ECONNREFUSED/;

/** The stream is not as expected, or gone for good; the caller finds out by reading it. */
export function isConflict(error: unknown): boolean {
  return error instanceof WrongExpectedVersionError || error instanceof StreamDeletedError;
}

/** A stream that is not there, or not any more: it reads as empty. */
export function isMissingStream(error: unknown): boolean {
  return error instanceof StreamNotFoundError || error instanceof StreamDeletedError;
}

/** Whether the client drops its channel at this error by itself, and connects anew at the next call. */
export function reconnectsByItself(error: unknown): boolean {
  const code = codeOf(error);
  return code === UNAVAILABLE || code === CANCELLED || error instanceof NotLeaderError;
}

/** The fault of a call that changes nothing. */
export function readFault(error: unknown): Fault {
  return error instanceof Fault ? error : storeUnavailable('event store', error);
}

/**
 * The error of an append that failed in another way than by a conflict: `store_unavailable` only when it
 * is certain that nothing was written; a `RangeError` when the events are too large for the server.
 */
export function appendError(error: unknown): Error {
  if (error instanceof Fault || error instanceof RangeError) return error;
  if (error instanceof MaxAppendSizeExceededError) {
    return new RangeError(`the append is larger than the event store takes (${error.maxAppendSize} bytes)`);
  }
  const refused =
    error instanceof Error && isCommandError(error) && !isIndefinite(error) && codeOf(error) === undefined;
  // A stream of batch appends is refused as a whole, with the status of the call.
  if (refused || error instanceof AccessDeniedError || NEVER_SENT.test(textOf(error)))
    return storeUnavailable('event store', error);
  if (error instanceof UnknownError) {
    return outcomeUnknown(error, 'The event store reported a failed write, which may still have been stored');
  }
  return outcomeUnknown(error);
}

/** Answers by which the server itself does not say whether it has written, such as those of a full disk. */
export function isIndefinite(error: unknown): boolean {
  return error instanceof UnknownError || error instanceof DeadlineExceededError;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
