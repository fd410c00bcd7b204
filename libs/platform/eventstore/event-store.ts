import type { EventMetadata, GlobalPosition, StreamRevision } from '#libs/kernel/event.ts';

export const APPEND_DEADLINE_MS = 2000;
/** For each next event of a read. */
export const READ_DEADLINE_MS = 3000;

/** An event to append; `data` and `metadata` are stored as JSON. */
export interface EventToAppend {
  readonly id: string;
  readonly type: string;
  readonly data: object;
  readonly metadata: EventMetadata;
}

/** Why an event is not one of Parley's. */
export type ForeignReason =
  /** Written by the event store: links, and events about streams. */
  | 'system_type'
  /** There is none, or it is no JSON object. */
  | 'no_metadata'
  | 'no_organization'
  /** Another application's, which has an organization as well. */
  | 'metadata';

/**
 * An event of the log. Its JSON is parsed, but not validated: the codec of its stream does that (`event-codec.ts`).
 *
 * A foreign event has its place in the stream and nothing else: no data, no metadata, and a type that no codec declares.
 * So everything that skips events of unknown types skips it, and nothing can use what another application wrote.
 */
export interface StoredEvent {
  readonly stream: string;
  readonly revision: StreamRevision;
  /** Null only in reads of single streams of old servers, which do not send it. */
  readonly position: GlobalPosition | null;
  readonly id: string;
  readonly type: string;
  readonly data: unknown;
  readonly metadata: unknown;
  /** The server's clock, in milliseconds since the Unix epoch. Never used in folds. */
  readonly createdMs: number;
  /** Why the event is not one of Parley's; absent in Parley's own. */
  readonly foreign?: ForeignReason;
}

export type AppendResult =
  | {
      readonly kind: 'appended';
      readonly revision: StreamRevision;
      readonly position: GlobalPosition | null;
      /**
       * When the server wrote the events, by its clock. Absent where they may be those of an earlier append with the same ids:
       * servers that are reached over the network do not tell.
       */
      readonly createdMs?: number;
    }
  /** The stream is not at the expected revision; nothing was written. */
  | { readonly kind: 'conflict' };

export interface ReadStreamOptions {
  /** First revision to read, inclusive. Default: 0 forwards, the last one backwards. */
  readonly from?: StreamRevision;
  readonly direction?: 'forwards' | 'backwards';
  /**
   * The caller has no events from this revision on. Default: `from`; a backward read needs nothing.
   *
   * @throws StreamGone from the read, if the stream begins later, or was deleted although it had this revision
   */
  readonly needs?: StreamRevision | 'nothing';
  /** Default: to the end. */
  readonly limit?: number;
  /** Deadline for each next event. Default 3,000. */
  readonly deadlineMs?: number;
  /** Ends the read when it aborts: the call is cancelled, and the iteration throws the signal's reason. */
  readonly signal?: AbortSignal;
}

/**
 * The log: appends to streams, and reads of streams.
 *
 * Guarantees: `append` resolves `appended` only after the server has acknowledged a durable write of all events at
 * exactly `expectedRevision`; it never writes some of them. Repeating it with the same event ids and the same expected
 * revision resolves `appended` with the original revision. Every call settles within its deadline.
 *
 * Omissions: no retries (the caller knows whether one is safe), no validation, no cache.
 *
 * Errors: `Fault` `store_unavailable` when the server is unavailable or refuses; `outcome_unknown` when an append was
 * sent and no answer arrived in time; `StreamGone` for what an operator deleted, also from an append.
 */
export interface EventStore {
  /** `deadlineMs`: default 2,000. @throws RangeError also for an append that is larger than the server accepts */
  append(
    stream: string,
    expectedRevision: StreamRevision,
    events: readonly EventToAppend[],
    options?: { readonly deadlineMs?: number },
  ): Promise<AppendResult>;

  /** Missing streams read as empty, and so do deleted ones, unless events are needed from a revision after the first. */
  readStream(stream: string, options?: ReadStreamOptions): AsyncIterable<StoredEvent>;

  /**
   * A cheap request that verifies that the server answers. Also rejects for 30 seconds after an append failed at the
   * server, for example because of a full disk, unless a later append has succeeded.
   */
  ping(): Promise<void>;

  close(): Promise<void>;
}
