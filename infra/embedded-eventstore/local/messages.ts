// Messages between a process and the event store in a thread of it. Each is a list: all calls, or all answers, of one
// turn of the event loop, because a message costs more than what is in it.

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

/** What a process calls. An answer is the result, or the message of an error. */
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
};

export type Call = readonly [id: number, method: keyof LocalCalls, args: readonly unknown[]];

/** The store publishes its end from the first call on. */
export type FromStore =
  | readonly [kind: 'result', id: number, result: unknown]
  | readonly [kind: 'error', id: number, message: string]
  /** Every event up to this position can be read. */
  | readonly [kind: 'end', position: number];
