/**
 * Port: the event store in a thread of this process, without gRPC. `infra/embedded-eventstore` has it, and the adapters of
 * `libs/platform/eventstore` use it. Positions are consecutive, and begin with 1.
 */
export interface EmbeddedLog {
  /** Whether its thread runs. Calls reject otherwise; a call that its thread has not answered rejects when that ends. */
  readonly isOpen: boolean;
  /** Position up to which every event can be read, as far as this process knows; 0 without the thread. */
  readonly end: number;
  /** Calls `listener` after each change of `end` or `isOpen`. Returns a function that unsubscribes. */
  onChange(listener: () => void): () => void;
  /**
   * @param expected -1 for a stream without events
   * @param deadlineMs Unix time after which nothing is written
   */
  append(
    stream: string,
    expected: number,
    deadlineMs: number,
    events: readonly EmbeddedProposal[],
  ): Promise<EmbeddedOutcome>;
  readStream(stream: string, from: number | 'end', direction: Direction, limit: number): Promise<EmbeddedStreamPage>;
  /**
   * Whether it is known without a message that the stream has no event from a revision on: a read has found its end, and the
   * thread has changed nothing of the stream since. False for streams that were not read lately.
   */
  isEnd(stream: string, from: number): boolean;
  readAll(from: number | 'end', direction: Direction, limit: number): Promise<EmbeddedPage>;
  /** The events at these positions, in this order. */
  readPositions(positions: readonly number[]): Promise<readonly EmbeddedEvent[]>;

  groups(): Promise<readonly EmbeddedGroup[]>;
  /** Does nothing if the group exists. */
  createGroup(name: string, settings: EmbeddedGroupSettings): Promise<void>;
  /** Drops its members. */
  updateGroup(name: string, settings: EmbeddedGroupSettings): Promise<void>;
  /** Does nothing if there is none. */
  deleteGroup(name: string): Promise<void>;
  parked(name: string, limit: number): Promise<readonly EmbeddedParkedEvent[]>;
  replayParked(name: string): Promise<void>;
  join(name: string, bufferSize: number, member: EmbeddedMember): Promise<EmbeddedMembership>;
}

/** JSON in `data` and `metadata`. */
export type EmbeddedProposal = readonly [id: string, type: string, data: string, metadata: string];

/** Positions: 0 stands for the start of the log. */
export interface EmbeddedGroup {
  readonly name: string;
  readonly messageTimeoutMs: number;
  readonly startFrom: number;
  /** Null before the first one. */
  readonly checkpoint: number | null;
  readonly members: number;
  /** Unanswered events of all members. */
  readonly inFlight: number;
  readonly waiting: number;
  /** Unanswered events, and those that are being parked. */
  readonly outstanding: number;
  readonly parked: number;
}

export interface EmbeddedGroupSettings {
  readonly messageTimeoutMs: number;
  /** A regular expression, which selects events by type. */
  readonly types: string;
  readonly startFrom: number;
}

export interface EmbeddedParkedEvent {
  /** Undefined where the link leads nowhere. */
  readonly event: { readonly stream: string; readonly revision: number; readonly type: string } | undefined;
  readonly createdMs: number;
  /** Of the link, as JSON. */
  readonly metadata: string;
}

export interface EmbeddedMember {
  /** Position -1: a parked link that leads nowhere. */
  onDelivery(id: string, position: number): void;
  /** The membership has ended: its unanswered events are delivered to others. */
  onDropped(error: Error): void;
}

/** What a member sends in one iteration of the event loop is one message. */
export interface EmbeddedMembership {
  acknowledge(id: string): void;
  park(id: string, reason: string): void;
  leave(): void;
}

export type Direction = 'forwards' | 'backwards';

export type EmbeddedOutcome =
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

/** `next`: where the next page begins. */
export interface EmbeddedPage {
  readonly events: readonly EmbeddedEvent[];
  readonly next: number | undefined;
}

export interface EmbeddedStreamPage extends EmbeddedPage {
  readonly status: 'exists' | 'missing' | 'deleted';
}

export interface EmbeddedEvent {
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
  readonly position: number;
  readonly type: string;
  readonly contentType: string;
  readonly createdMs: number;
  readonly data: Buffer;
  readonly metadata: Buffer;
}
