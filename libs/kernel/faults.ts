/**
 * A failure outside the domain, with its HTTP status. A refusal by the domain is a `Rejection` instead. This file lists
 * all faults.
 */
export class Fault extends Error {
  readonly code: FaultCode;
  readonly status: number;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: FaultCode, message: string, options: { cause?: unknown; retryAfterSeconds?: number } = {}) {
    super(message, { cause: options.cause });
    this.name = 'Fault';
    this.code = code;
    this.status = FAULT_STATUS[code];
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

const FAULT_STATUS = {
  /** A store does not answer, refuses, or catches up. A retry is safe. */
  store_unavailable: 503,
  /** The command may have been written, or a part of it; it may be repeated. */
  outcome_unknown: 503,
  /** The queues of this process are full. */
  overloaded: 503,
  stopping: 503,
  /** The read model did not reach the requested position in time. */
  not_caught_up: 503,
  /** Other writers caused more conflicts than the command may be retried. */
  conflict: 409,
  /** An operator deleted events in the event store that the request needs: see {@link StreamGone}. */
  gone: 410,
  /** `If-Match` does not allow the revision of the entity. */
  precondition_failed: 412,
} as const;

type FaultCode = keyof typeof FAULT_STATUS;

/** @param why shown to callers: names no host */
export function storeUnavailable(store: 'the event store' | 'Redis' | 'Kafka', cause?: unknown, why?: string): Fault {
  const message = `${store[0]?.toUpperCase()}${store.slice(1)} is unavailable${why === undefined ? '' : `: ${why}`}`;
  return new Fault('store_unavailable', message, { cause, retryAfterSeconds: 2 });
}

/** @param what the behavior of the event store, as the start of a sentence */
export function outcomeUnknown(cause?: unknown, what = 'The event store did not answer in time'): Fault {
  return new Fault('outcome_unknown', `${what}; the command may be repeated`, { cause, retryAfterSeconds: 2 });
}

/** Maps a fault after the first write of a command: it must not claim that nothing was written. */
export function faultAfterWrite(error: unknown): unknown {
  if (!(error instanceof Fault)) return error;
  return new Fault('outcome_unknown', 'A part was written before the rest failed; the command may be repeated', {
    cause: error,
    retryAfterSeconds: 2,
  });
}

/** Events were deleted or truncated in the event store. A retry does not help. */
export class StreamGone extends Fault {
  /** Sequence of the first event that is left; null if the whole stream was deleted. */
  readonly firstSequence: number | null;

  constructor(firstSequence: number | null, cause?: unknown) {
    const what =
      firstSequence === null ? 'This was deleted' : `The events before sequence ${firstSequence} were deleted`;
    super('gone', `${what} in the event store`, { cause });
    this.name = 'StreamGone';
    this.firstSequence = firstSequence;
  }
}

/** A stored event is invalid for this version of Parley: processing halts at it. */
export class CorruptEventError extends Error {
  override readonly name = 'CorruptEventError';
}

/** The `code` of an error of Node or of a library; undefined for anything else. */
export function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
