/**
 * The catalogue of faults: what goes wrong outside the domain. A refusal by the domain is no fault,
 * it is a `Rejection`. Each fault knows the HTTP status that it becomes at the edge.
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
  /** A store does not answer, refuses, or is still catching up. A retry is safe. */
  store_unavailable: 503,
  /** Something may have been written, or a part of it; the same command may be sent again. */
  outcome_unknown: 503,
  /** This process has more to do than it may queue. */
  overloaded: 503,
  /** The stop of this process has begun. */
  stopping: 503,
  /** The read model has not reached the position that the caller asked for in time. */
  not_caught_up: 503,
  /** Bounded retries did not get the command through against other writers. */
  conflict: 409,
  /** The entity is not at a revision that the caller allows (`If-Match`). */
  precondition_failed: 412,
} as const;

export type FaultCode = keyof typeof FAULT_STATUS;

export type StoreName = 'event store' | 'redis' | 'kafka';

export function storeUnavailable(store: StoreName, cause?: unknown): Fault {
  return new Fault('store_unavailable', `The ${store} is unavailable`, { cause, retryAfterSeconds: 2 });
}

/** @param what what the event store did, as the start of a sentence */
export function outcomeUnknown(cause?: unknown, what = 'The event store did not answer in time'): Fault {
  return new Fault('outcome_unknown', `${what}; the command may be repeated`, { cause, retryAfterSeconds: 2 });
}

/** What a fault means that comes after a first write of the same command: never "nothing was written". */
export function faultAfterWrite(error: unknown): unknown {
  if (!(error instanceof Fault)) return error;
  return new Fault('outcome_unknown', 'A part was written before the rest failed; the command may be repeated', {
    cause: error,
    retryAfterSeconds: 2,
  });
}

/** A stored event that this version of Parley cannot accept: processing halts at it, loudly. */
export class CorruptEventError extends Error {
  override readonly name = 'CorruptEventError';
}
