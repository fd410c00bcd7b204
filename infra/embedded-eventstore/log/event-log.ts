// The only interface between the gRPC services and storage. Positions and revisions are safe integers (64-bit strings
// on the wire), except that of a tombstone: see TOMBSTONE_REVISION in stored-event.ts.
import type { ProposedEvent, StoredEvent } from './stored-event.ts';
import type { StreamChanges } from './stream-changes.ts';

/** An exact revision, or one of the protocol's conditions. */
export type ExpectedRevision = 'any' | 'no_stream' | 'stream_exists' | number;

export type DeleteRequest = { stream: string; expected: ExpectedRevision };

export type AppendRequest = DeleteRequest & {
  events: readonly ProposedEvent[];
  /** Epoch milliseconds; nothing is written when the append is decided later. */
  deadline?: number;
};

/**
 * The write is durable, or repeats an earlier one, whose figures these are then. `revision` is undefined for a stream
 * without events (an append of nothing).
 */
export type Written = {
  kind: 'written';
  revision: number | undefined;
  position: number | undefined;
  /** When the events of this append were written; absent for a repetition and for an append of nothing. */
  createdMs?: number;
};

/** Result of an append, delete or tombstone. `current` is undefined for a stream without events. */
export type WriteOutcome =
  | Written
  | { kind: 'wrong-revision'; current: number | undefined }
  | { kind: 'stream-deleted' }
  | { kind: 'deadline-passed' };

export type Direction = 'forwards' | 'backwards';

/**
 * `from` is a position, inclusive; `end` is after the last event. `limit` bounds the records examined, not only those
 * returned.
 */
export type ReadAllRequest = { from: number | 'end'; direction: Direction; limit: number };

/** `from` is a revision. */
export type ReadStreamRequest = ReadAllRequest & { stream: string };

/**
 * `next` is the start of the next page (inclusive), undefined when there is none now. A page excludes events that
 * truncation or age hides, so it may be empty while `next` is set.
 */
export type Page = { readonly events: readonly StoredEvent[]; readonly next: number | undefined };

export type StreamInfo = {
  /** `missing`: never written, or soft-deleted. `deleted`: tombstoned. */
  status: 'exists' | 'missing' | 'deleted';
  /** Last revision ever written, also of a soft-deleted stream; undefined when there is none. */
  lastRevision: number | undefined;
};

/** A group commit, published once, after it is durable and readable. */
export type Commit = {
  /** Every event up to this position (inclusive) can be read. */
  position: number;
  /** Streams that got events, or whose metadata or existence changed. */
  streams: ReadonlySet<string>;
};

/** Small durable values (checkpoints, group settings), in the same file as the events. */
export interface DurableKeyValue {
  get(key: string): Uint8Array | undefined;
  /** Entries whose key starts with `prefix` (not empty), in key order. Keys are at most 1000 bytes. */
  entries(prefix: string): { key: string; value: Uint8Array }[];
  /** Resolves when it is on disk. */
  put(key: string, value: Uint8Array): Promise<void>;
  /** Resolves when it is on disk; ignores a missing key. */
  delete(key: string): Promise<void>;
}

/** A write could not be made durable (disk full, read-only, closed). */
export class LogWriteError extends Error {
  override name = 'LogWriteError';
}

/**
 * The log. Guarantees: writes are decided one after another in the order of the calls; a write is on disk before its
 * promise resolves, before it can be read, and before a listener is called; events of one append are contiguous and all
 * or nothing. Reads are synchronous, return one bounded page each, and see all acknowledged writes. Omissions: no
 * access control, no physical removal of truncated events.
 */
export interface EventLog {
  /** Position of the newest committed event; 0 while there is none. Positions start at 1. */
  readonly lastPosition: number;
  /** Bytes of event data that wait to be committed; callers pause when it grows. */
  readonly pendingBytes: number;

  /** @throws LogWriteError (rejects) */
  append(request: AppendRequest): Promise<WriteOutcome>;
  /** Soft delete: hides the events; a later append revives the stream. @throws LogWriteError (rejects) */
  deleteStream(request: DeleteRequest): Promise<WriteOutcome>;
  /** Final: the name can never be used again. @throws LogWriteError (rejects) */
  tombstoneStream(request: DeleteRequest): Promise<WriteOutcome>;

  streamInfo(stream: string): StreamInfo;
  /** Returns an empty page for a missing or deleted stream; `streamInfo` tells them apart. */
  readStream(request: ReadStreamRequest): Page;
  /** Ignores truncation and deletion. */
  readAll(request: ReadAllRequest): Page;
  /** The target of a link, undefined when it does not exist; any other event unchanged. */
  resolveLink(event: StoredEvent): StoredEvent | undefined;

  /** Returns a function that unsubscribes. A listener must not throw. */
  onCommit(listener: (commit: Commit) => void): () => void;
  /** The same, only for commits that touch `stream`. */
  onStreamCommit(stream: string, listener: () => void): () => void;

  /** Of the streams of each commit. */
  readonly changes: StreamChanges;

  readonly keyValue: DurableKeyValue;

  /** Waits for writes under way. Later writes reject. */
  close(): Promise<void>;
}

/** One stream or `$all`. An offset is a revision in a stream, and a position in `$all`. */
export interface LogSource {
  page(from: number | 'end', direction: Direction, limit: number): Page;
  offsetOf(event: StoredEvent): number;
  /** The offset after the last event. */
  end(): number;
  /** Calls `listener` after each commit that may have added an event. Returns a function that unsubscribes. */
  onCommit(listener: () => void): () => void;
}

/** `stream` undefined: `$all`. */
export function logSource(log: EventLog, stream: string | undefined): LogSource {
  if (stream === undefined) {
    return {
      page: (from, direction, limit) => log.readAll({ from, direction, limit }),
      offsetOf: (event) => event.position,
      end: () => log.lastPosition + 1,
      onCommit: (listener) => log.onCommit(listener),
    };
  }
  return {
    page: (from, direction, limit) => log.readStream({ stream, from, direction, limit }),
    offsetOf: (event) => event.revision,
    end: () => (log.streamInfo(stream).lastRevision ?? -1) + 1,
    onCommit: (listener) => log.onStreamCommit(stream, listener),
  };
}
