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
import { codeOf, Fault, messageOf, outcomeUnknown, storeUnavailable, StreamGone } from '#libs/kernel/faults.ts';

/** gRPC status codes. */
const UNAVAILABLE = 14;
const CANCELLED = 1;

/** Messages of gRPC for a call that was never sent. After any other error the server may have received the append. */
const NEVER_SENT = /No connection established|Channel closed before call started|Name resolution failed|ECONNREFUSED/;

/** The stream is at another revision. */
export function isConflict(error: unknown): boolean {
  return error instanceof WrongExpectedVersionError;
}

/** The stream does not exist, or not any more: it reads as empty. */
export function isMissingStream(error: unknown): boolean {
  return error instanceof StreamNotFoundError || error instanceof StreamDeletedError;
}

/** Whether the client reacts to this error by connecting again at the next call. */
export function reconnectsByItself(error: unknown): boolean {
  const code = codeOf(error);
  return code === UNAVAILABLE || code === CANCELLED || error instanceof NotLeaderError;
}

export function readFault(error: unknown): Fault {
  return error instanceof Fault ? error : storeUnavailable('the event store', error);
}

/**
 * The error of an append that failed without a conflict: `store_unavailable` only when it is certain that nothing was
 * written; a `RangeError` when the events are too large for the server.
 */
export function appendError(error: unknown): Error {
  if (error instanceof Fault || error instanceof RangeError) return error;
  if (error instanceof StreamDeletedError) return new StreamGone(null, error);
  if (error instanceof MaxAppendSizeExceededError) {
    return new RangeError(`the append is larger than the event store accepts (${error.maxAppendSize} bytes)`);
  }
  const refused =
    error instanceof Error && isCommandError(error) && !isIndefinite(error) && codeOf(error) === undefined;
  // The server refuses the whole stream of batch appends, with the status of the call.
  if (refused || error instanceof AccessDeniedError || NEVER_SENT.test(messageOf(error)))
    return storeUnavailable('the event store', error);
  if (error instanceof UnknownError) {
    return outcomeUnknown(error, 'The event store reported a failed write, which may still have been stored');
  }
  return outcomeUnknown(error);
}

/** Errors of the server, such as a full disk, after which it may or may not have written the events. */
export function isIndefinite(error: unknown): boolean {
  return error instanceof UnknownError || error instanceof DeadlineExceededError;
}
