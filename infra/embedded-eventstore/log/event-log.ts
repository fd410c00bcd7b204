// The one interface between the gRPC services and storage. Positions and
// revisions are plain safe integers in here (they become 64-bit strings on the
// wire); a tombstone is the exception, see TOMBSTONE_REVISION in stored-event.ts.
import type { ProposedEvent, StoredEvent } from './stored-event.ts';

/** An exact revision (0 or more), or one of the protocol's conditions. */
export type ExpectedRevision = 'any' | 'no_stream' | 'stream_exists' | number;

export type AppendRequest = {
  stream: string;
  expected: ExpectedRevision;
  events: readonly ProposedEvent[];
  /** Epoch milliseconds; when it has passed before the append is decided, nothing is written. */
  deadline?: number;
};

export type DeleteRequest = { stream: string; expected: ExpectedRevision };

/**
 * What became of an append, delete or tombstone.
 * - `written`: durable; also when the same events were there already (then with the original figures).
 *   `revision` is undefined when the stream still has no event (an append of nothing).
 * - `wrong-revision`: `current` is undefined for a stream without events.
 */
export type WriteOutcome =
  | { kind: 'written'; revision: number | undefined; position: number | undefined }
  | { kind: 'wrong-revision'; current: number | undefined }
  | { kind: 'stream-deleted' }
  | { kind: 'deadline-passed' };

export type Direction = 'forwards' | 'backwards';

/**
 * `from` is inclusive, `end` is behind the last event (so forwards there is
 * nothing, backwards everything); `limit` bounds the records looked at, not only those returned. */
export type ReadStreamRequest = {
  stream: string;
  from: number | 'end';
  direction: Direction;
  limit: number;
};

export type ReadAllRequest = {
  /** A position. Inclusive in both directions. */
  from: number | 'end';
  direction: Direction;
  limit: number;
};

/**
 * A page. `next` is where to go on (inclusive), undefined when nothing is left
 * in that direction now. Events that truncation or age hides are not in it, so
 * a page may be empty while `next` is set.
 */
export type Page = { events: StoredEvent[]; next: number | undefined };

/** `missing`: never written, or soft-deleted. `deleted`: tombstoned. */
export type StreamStatus = 'exists' | 'missing' | 'deleted';

export type StreamInfo = {
  status: StreamStatus;
  /** Last revision ever written, also of a soft-deleted stream; undefined when there is none. */
  lastRevision: number | undefined;
};

/** Told once per group commit, after it is durable and readable. */
export type Commit = {
  /** Every event up to and including this position can be read. */
  position: number;
  /** Streams that got events, or whose metadata or existence changed. */
  streams: ReadonlySet<string>;
};

/** Small durable values (checkpoints, group settings), in the same file as the events. */
export interface DurableKeyValue {
  get(key: string): Uint8Array | undefined;
  /** Entries whose key starts with `prefix`, in key order. Keys are at most 1000 bytes. */
  entries(prefix: string): { key: string; value: Uint8Array }[];
  /** Resolves when it is on disk. */
  put(key: string, value: Uint8Array): Promise<void>;
  /** Resolves when it is on disk. Missing keys are fine. */
  delete(key: string): Promise<void>;
}

/** A write could not be made durable (disk full, read-only, closed). Nothing of it is acknowledged. */
export class LogWriteError extends Error {
  override name = 'LogWriteError';
}

/**
 * The log. Guarantees: writes are decided one after another in the order of
 * the calls; a write is on disk before its promise resolves, before it can be
 * read, and before a listener hears of it; events of one append are contiguous
 * and all or nothing. Reads are synchronous, one bounded page each, and see
 * everything acknowledged. Omissions: no access control, no physical removal
 * of truncated events.
 */
export interface EventLog {
  /** Position of the newest committed event; 0 while there is none. Positions start at 1. */
  readonly lastPosition: number;
  /** Bytes of event data that wait to be committed; callers hold back when it grows. */
  readonly pendingBytes: number;

  /** @throws LogWriteError (rejects) */
  append(request: AppendRequest): Promise<WriteOutcome>;
  /** Soft delete: hides the events; a later append revives the stream. @throws LogWriteError (rejects) */
  deleteStream(request: DeleteRequest): Promise<WriteOutcome>;
  /** Final: the name can never be used again. @throws LogWriteError (rejects) */
  tombstoneStream(request: DeleteRequest): Promise<WriteOutcome>;

  streamInfo(stream: string): StreamInfo;
  /** A missing or deleted stream reads as an empty page; ask `streamInfo` for the difference. */
  readStream(request: ReadStreamRequest): Page;
  /** Ignores truncation and deletion. */
  readAll(request: ReadAllRequest): Page;
  /** The event that a link names; undefined when it is gone. Any other event is returned as it is. */
  resolveLink(event: StoredEvent): StoredEvent | undefined;

  /** Returns the function that ends it. A listener must not throw. */
  onCommit(listener: (commit: Commit) => void): () => void;
  /** The same, only for commits that touch `stream`. */
  onStreamCommit(stream: string, listener: () => void): () => void;

  readonly keyValue: DurableKeyValue;

  /** Waits for writes under way, then releases the data folder. Later writes reject. */
  close(): Promise<void>;
}
