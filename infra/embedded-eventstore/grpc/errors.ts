// Errors as the official client expects them: a gRPC status plus trailers, of
// which `exception` says which typed error the client makes. Trailers must be
// ASCII.
import { Metadata, status } from '@grpc/grpc-js';
import type { StatusObject } from '@grpc/grpc-js';
import { LogWriteError } from '../log/event-log.ts';
import type { ExpectedRevision } from '../log/event-log.ts';

/** Limit of one append: the data of all its events. EventStoreDB 23.10 counts neither metadata nor types. */
export const MAX_APPEND_BYTES = 1024 * 1024;
/** What is not counted has to be bounded, too. Each event must fit into a message of 17 MiB, the most that clients read. */
export const MAX_RECORDS_BYTES = 16 * 1024 * 1024;

/** An error on its way to the client; thrown inside handlers. */
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
  return new CallError(status.FAILED_PRECONDITION, wrongVersionMessage(stream, expected, current), {
    exception: 'wrong-expected-version',
    'stream-name': stream,
    'expected-version': String(EXPECTED_NUMBERS[String(expected)] ?? expected),
    // Absent for a stream without events; the client reads that as "no_stream".
    ...(current === undefined ? {} : { 'actual-version': String(current) }),
  });
}

export function wrongVersionMessage(stream: string, expected: ExpectedRevision, current: number | undefined): string {
  return `Append failed due to WrongExpectedVersion. Stream: ${stream}, expected: ${expected}, actual: ${current ?? 'no_stream'}`;
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

/** The write could not be made durable: nothing of it is in the log, reads go on. */
export function writeFailed(reason: string): CallError {
  return new CallError(status.UNAVAILABLE, `The event store could not write to disk: ${reason}`);
}

/** Sent on every open stream when the server stops. */
export function stopping(): CallError {
  return new CallError(status.CANCELLED, 'The event store is stopping.');
}

/** Sent when the server stops before an append has arrived whole: nothing of it is in the log. */
export function stoppedBeforeAppend(): CallError {
  return new CallError(status.UNAVAILABLE, 'The event store is stopping; the append had not arrived whole.');
}

/** Whatever was thrown, as a status. */
export function toCallError(error: unknown): CallError {
  if (error instanceof CallError) return error;
  if (error instanceof LogWriteError) return writeFailed(error.message);
  return new CallError(status.INTERNAL, error instanceof Error ? error.message : String(error));
}

/** How the protocol counts the conditions that are not revisions. */
const EXPECTED_NUMBERS: Record<string, number> = { no_stream: -1, any: -2, stream_exists: -4 };

/** Percent-encodes what a trailer cannot carry. */
function ascii(text: string): string {
  return text.replace(/[^\x20-\x7e]/gu, (character) => encodeURIComponent(character.isWellFormed() ? character : '?'));
}
