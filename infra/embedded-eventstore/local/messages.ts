// Messages between a process and the event store in a thread of it. Each is a list: all calls, or all answers, of one
// iteration of the event loop, because a message costs more than its contents.

/** JSON in `data` and `metadata`. */
export type LocalEvent = readonly [id: string, type: string, data: string, metadata: string];

export type LocalAppendOutcome =
  /** `createdMs` is null for a repeated append: the store keeps the events of the first one. */
  | {
      readonly kind: 'written';
      readonly revision: number;
      readonly position: number;
      readonly createdMs: number | null;
    }
  | { readonly kind: 'wrong-revision' | 'stream-deleted' | 'deadline-passed' }
  | { readonly kind: 'too-large'; readonly maxBytes: number }
  /** The disk refused it. */
  | { readonly kind: 'failed'; readonly reason: string };

export type LocalDirection = 'forwards' | 'backwards';

/** Events as field 1 of a protobuf message, repeated: the stored frames. `next`: as in `Page`. */
export type PageBytes = { readonly bytes: Uint8Array<ArrayBuffer>; readonly next: number | undefined };
export type StreamPageBytes = PageBytes & { readonly status: 'exists' | 'missing' | 'deleted' };

export type LocalGroup = {
  readonly name: string;
  readonly messageTimeoutMs: number;
  /** A position, or 0: the start. */
  readonly startFrom: number;
  /** Null before the first one. */
  readonly checkpoint: number | null;
  readonly members: number;
  readonly inFlight: number;
  readonly waiting: number;
  readonly outstanding: number;
  readonly parked: number;
};

export type LocalGroupSettings = {
  readonly messageTimeoutMs: number;
  /** A regular expression, which selects events by type. */
  readonly types: string;
  /** A position, or 0: the start. */
  readonly startFrom: number;
};

/** The metadata of the link is JSON. The event is missing where the link leads nowhere. */
export type LocalParkedEvent = {
  readonly event: { readonly stream: string; readonly revision: number; readonly type: string } | undefined;
  readonly createdMs: number;
  readonly metadata: string;
};

/** Calls of a process. An answer is the result, or the message of an error. */
export type LocalCalls = {
  /** `expected` -1: the stream has no events. `deadlineMs`: Unix time. */
  append(
    stream: string,
    expected: number,
    deadlineMs: number,
    events: readonly LocalEvent[],
  ): Promise<LocalAppendOutcome>;
  readStream(stream: string, from: number | 'end', direction: LocalDirection, limit: number): StreamPageBytes;
  readAll(from: number | 'end', direction: LocalDirection, limit: number): PageBytes;
  /** The events at these positions, in this order. */
  readPositions(positions: readonly number[]): PageBytes;

  /** Groups on `$all`. */
  groups(): readonly LocalGroup[];
  /** Does nothing if the group exists. */
  createGroup(name: string, settings: LocalGroupSettings): Promise<void>;
  /** Drops its members. */
  updateGroup(name: string, settings: LocalGroupSettings): Promise<void>;
  /** Does nothing if there is none. */
  deleteGroup(name: string): Promise<void>;
  parked(name: string, limit: number): readonly LocalParkedEvent[];
  replayParked(name: string): void;
  /** Deliveries name the member, a number that the process has chosen. */
  join(member: number, name: string, bufferSize: number): void;
  leave(member: number): void;
  acknowledge(member: number, ids: readonly string[]): void;
  park(member: number, id: string, reason: string): void;
};

/** The id is 0 for calls without an answer. */
export type Call = readonly [id: number, method: keyof LocalCalls, args: readonly unknown[]];

/** The store publishes its end from the first call on. */
export type FromStore =
  | readonly [kind: 'result', id: number, result: unknown]
  | readonly [kind: 'error', id: number, message: string]
  /** Every event up to this position can be read. */
  | readonly [kind: 'end', position: number]
  /** To a member of a group. Position -1: a parked link that leads nowhere. */
  | readonly [kind: 'delivery', member: number, id: string, position: number]
  /** The membership has ended. */
  | readonly [kind: 'dropped', member: number, reason: string];
