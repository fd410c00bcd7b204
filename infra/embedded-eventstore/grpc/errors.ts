// Errors as the official client expects them: a gRPC status, and trailers, of
// which `exception` selects the typed error of the client. Trailers are ASCII.
import { messageOf } from '#libs/kernel/faults.ts';
import { Metadata, status, type StatusObject } from '@grpc/grpc-js';
import {
  type DeleteRequest,
  type ExpectedRevision,
  LogWriteError,
  type WriteOutcome,
  type Written,
} from '../log/event-log.ts';

/** Limit for the data of all events of an append. EventStoreDB 23.10 counts neither metadata nor types. */
export const MAX_APPEND_BYTES = 1024 * 1024;
/** Limit for whole records, so that each event fits into a message of 17 MiB, the most that clients read. */
export const MAX_RECORDS_BYTES = 16 * 1024 * 1024;

/** An error for the client; handlers throw it. */
export class CallError extends Error {
  readonly code: status;
  readonly metadata: Metadata;

  constructor(code: status, message: string, trailers: Record<string, string> = {}) {
    super(message);
    this.code = code;
    this.metadata = new Metadata();
    for (const [key, value] of Object.entries(trailers)) this.metadata.set(key, ascii(value));
  }

  toStatus(): Partial<StatusObject> & { name: string; message: string } {
    const details = ascii(this.message);
    return { code: this.code, details, metadata: this.metadata, name: 'Error', message: details };
  }
}

export function invalidArgument(message: string): CallError {
  return new CallError(status.INVALID_ARGUMENT, message);
}

export function streamDeleted(stream: string): CallError {
  return new CallError(status.FAILED_PRECONDITION, `Event stream '${stream}' is deleted.`, {
    exception: 'stream-deleted',
    'stream-name': stream,
  });
}

export function wrongExpectedVersion(
  stream: string,
  expected: ExpectedRevision,
  current: number | undefined,
): CallError {
  const message = `Append failed due to WrongExpectedVersion. Stream: ${stream}, expected: ${expected}, actual: ${current ?? 'no_stream'}`;
  return new CallError(status.FAILED_PRECONDITION, message, {
    exception: 'wrong-expected-version',
    'stream-name': stream,
    'expected-version': String(EXPECTED_NUMBERS[String(expected)] ?? expected),
    // Absent for a stream without events; the client reads that as "no_stream".
    ...(current === undefined ? {} : { 'actual-version': String(current) }),
  });
}

export function maximumAppendSizeExceeded(): CallError {
  return new CallError(status.INVALID_ARGUMENT, `Maximum append size of ${MAX_APPEND_BYTES} bytes exceeded.`, {
    exception: 'maximum-append-size-exceeded',
    'maximum-append-size': String(MAX_APPEND_BYTES),
  });
}

export function requiredMetadataMissing(missing: string): CallError {
  return new CallError(status.INVALID_ARGUMENT, `Required metadata property missing: ${missing}.`, {
    exception: 'missing-required-metadata-property',
    'required-metadata-properties': 'type,content-type',
  });
}

export function deadlinePassed(): CallError {
  return new CallError(status.DEADLINE_EXCEEDED, 'The deadline had passed before the append was decided.');
}

/** Sent when the server stops while it receives an append. Nothing of the append is in the log. */
export function stoppedBeforeAppend(): CallError {
  return new CallError(status.UNAVAILABLE, 'The event store is stopping; the append had not arrived completely.');
}

/** The result of a write that succeeded. @throws CallError for every other outcome */
export function requireWritten({ stream, expected }: DeleteRequest, outcome: WriteOutcome): Written {
  switch (outcome.kind) {
    case 'written':
      return outcome;
    case 'wrong-revision':
      throw wrongExpectedVersion(stream, expected, outcome.current);
    case 'stream-deleted':
      throw streamDeleted(stream);
    case 'deadline-passed':
      throw deadlinePassed();
  }
}

export function toCallError(error: unknown): CallError {
  if (error instanceof CallError) return error;
  const message = messageOf(error);
  if (!(error instanceof LogWriteError)) return new CallError(status.INTERNAL, message);
  // Nothing of the write is in the log; reads still work.
  return new CallError(status.UNAVAILABLE, `The event store could not write to disk: ${message}`);
}

/** The protocol's numbers for conditions that are not revisions. */
const EXPECTED_NUMBERS: Record<string, number> = { no_stream: -1, any: -2, stream_exists: -4 };

/** Percent-encodes the characters that a trailer cannot contain. */
function ascii(text: string): string {
  return text.replace(/[^\x20-\x7e]/gu, (character) => encodeURIComponent(character.isWellFormed() ? character : '?'));
}
