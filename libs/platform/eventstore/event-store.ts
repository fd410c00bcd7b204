import type { EventMetadata, GlobalPosition, StreamRevision } from '#libs/kernel/event.ts';

/** An event on its way into the log; `data` and `metadata` become JSON. */
export interface EventToAppend {
  readonly id: string;
  readonly type: string;
  readonly data: object;
  readonly metadata: EventMetadata;
}

/**
 * An event as the log holds it, JSON parsed but not yet checked against any schema: a codec does that
 * (see `event-codec.ts`), because only the owner of a stream knows its events.
 */
export interface StoredEvent {
  readonly stream: string;
  readonly revision: StreamRevision;
  /** Absent only where the server did not send one (reads of single streams of old servers). */
  readonly position: GlobalPosition | null;
  readonly id: string;
  readonly type: string;
  readonly data: unknown;
  readonly metadata: unknown;
  /** The server's clock, in milliseconds since the Unix epoch. Never used in folds. */
  readonly createdMs: number;
}

export type AppendResult =
  | { readonly kind: 'appended'; readonly revision: StreamRevision; readonly position: GlobalPosition | null }
  /** The stream is not at the expected revision; nothing was written. */
  | { readonly kind: 'conflict' };

export interface ReadStreamOptions {
  /** First revision to read, inclusive. Default: 0 forwards, the last one backwards. */
  readonly from?: StreamRevision;
  readonly direction?: 'forwards' | 'backwards';
  /** Default: to the end. */
  readonly limit?: number;
  /** How long to wait for each next event. Default: 3,000 ms. */
  readonly deadlineMs?: number;
  /** Ends the read when it aborts: the call is cancelled, and the iteration throws the signal's reason. */
  readonly signal?: AbortSignal;
}

/**
 * The log, as commands and reads use it.
 *
 * Guarantees: `append` resolves `appended` only after the server acknowledged a durable write, all
 * events or none, and exactly at `expectedRevision`; appending the same event ids at the same expected
 * revision again answers `appended` with the original revision. Every call settles within its deadline.
 *
 * Omissions: no retries (the caller knows whether one is safe), no schema checks, no caching.
 *
 * Errors: `Fault` `store_unavailable` when the server cannot be reached or refuses, `outcome_unknown`
 * when an append was sent and no answer came in time.
 */
export interface EventStore {
  /** `deadlineMs`: default 2,000. Errors besides those above: `RangeError` for more than the server takes at once. */
  append(
    stream: string,
    expectedRevision: StreamRevision,
    events: readonly EventToAppend[],
    options?: { readonly deadlineMs?: number },
  ): Promise<AppendResult>;

  /** Missing and deleted streams read as empty. `deadlineMs` bounds the wait for each next event. */
  readStream(stream: string, options?: ReadStreamOptions): AsyncIterable<StoredEvent>;

  /**
   * One cheap round trip that proves the server answers. Rejects as well for 30 seconds after the server answered an
   * append with a failure of its own, such as a full disk, unless another append has succeeded since.
   */
  ping(): Promise<void>;

  close(): Promise<void>;
}
