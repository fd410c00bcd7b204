// Messages between a process and the event store in a thread of it. Each is a list: all calls, or all answers, of one
// iteration of the event loop, because a message costs more than its contents.
import type { EmbeddedLog, EmbeddedPage, EmbeddedStreamPage } from '#libs/platform/embedded-log/index.ts';

/** Events as field 1 of a protobuf message, repeated: the stored frames. */
export type PageBytes = Omit<EmbeddedPage, 'events'> & { readonly bytes: Uint8Array<ArrayBuffer> };
export type StreamPageBytes = PageBytes & Pick<EmbeddedStreamPage, 'status'>;

type Unchanged = 'append' | 'groups' | 'createGroup' | 'updateGroup' | 'deleteGroup' | 'parked' | 'replayParked';

/** Calls of a process. An answer is the result, or the message of an error. */
export type LocalCalls = Pick<EmbeddedLog, Unchanged> & {
  readStream(...args: Parameters<EmbeddedLog['readStream']>): Promise<StreamPageBytes>;
  readAll(...args: Parameters<EmbeddedLog['readAll']>): Promise<PageBytes>;
  readPositions(...args: Parameters<EmbeddedLog['readPositions']>): Promise<PageBytes>;
  /** Deliveries name the member, a number that the process has chosen. */
  join(member: number, name: string, bufferSize: number): Promise<void>;
  leave(member: number): Promise<void>;
  acknowledge(member: number, ids: readonly string[]): Promise<void>;
  park(member: number, id: string, reason: string): Promise<void>;
};

/** The id is 0 for calls without an answer. */
export type Call = readonly [id: number, method: keyof LocalCalls, args: readonly unknown[]];

/** The store answers the first message with its counters, and publishes its end from then on. */
export type FromStore =
  | readonly [kind: 'result', id: number, result: unknown]
  | readonly [kind: 'error', id: number, message: string]
  /** The memory of `StreamChanges`. */
  | readonly [kind: 'changes', shared: SharedArrayBuffer]
  /** Every event up to this position can be read. */
  | readonly [kind: 'end', position: number]
  /** To a member of a group. Position -1: a parked link that leads nowhere. */
  | readonly [kind: 'delivery', member: number, id: string, position: number]
  /** The membership has ended. */
  | readonly [kind: 'dropped', member: number, reason: string];
