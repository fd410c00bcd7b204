import type { ServedGroup } from './group-server.ts';

/** The event store in a thread of this process, as the adapters without gRPC call it. `infra/embedded-eventstore` has it. */
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
    events: readonly (readonly [id: string, type: string, data: string, metadata: string])[],
  ): Promise<EmbeddedOutcome>;
  readStream(stream: string, from: number | 'end', direction: Direction, limit: number): Promise<EmbeddedStreamPage>;
  /** Positions are consecutive, and begin with 1. */
  readAll(from: number | 'end', direction: Direction, limit: number): Promise<EmbeddedPage>;
  /** The events at these positions, in this order. */
  readPositions(positions: readonly number[]): Promise<readonly EmbeddedEvent[]>;

  groups(): Promise<readonly EmbeddedGroup[]>;
  /** Does nothing if the group exists. */
  createGroup(name: string, settings: EmbeddedGroupSettings): Promise<void>;
  updateGroup(name: string, settings: EmbeddedGroupSettings): Promise<void>;
  /** Does nothing if there is none. */
  deleteGroup(name: string): Promise<void>;
  parked(name: string, limit: number): Promise<readonly EmbeddedParkedEvent[]>;
  replayParked(name: string): Promise<void>;
  join(name: string, bufferSize: number, member: EmbeddedMember): Promise<EmbeddedMembership>;
}

/** Positions: 0 stands for the start of the log. */
interface EmbeddedGroup extends Omit<ServedGroup, 'startFrom' | 'checkpoint'> {
  readonly startFrom: number;
  readonly checkpoint: number | null;
}

interface EmbeddedGroupSettings {
  readonly messageTimeoutMs: number;
  /** A regular expression. */
  readonly types: string;
  readonly startFrom: number;
}

interface EmbeddedParkedEvent {
  readonly event: { readonly stream: string; readonly revision: number; readonly type: string } | undefined;
  readonly createdMs: number;
  /** JSON. */
  readonly metadata: string;
}

export interface EmbeddedMember {
  /** Position -1: a parked link that leads nowhere. */
  onDelivery(id: string, position: number): void;
  /** The membership has ended. */
  onDropped(error: Error): void;
}

/** What a member sends in one iteration of the event loop is one message. */
export interface EmbeddedMembership {
  acknowledge(id: string): void;
  park(id: string, reason: string): void;
  leave(): void;
}

type Direction = 'forwards' | 'backwards';

/** `createdMs`: null for a repeated append. */
type EmbeddedOutcome =
  | {
      readonly kind: 'written';
      readonly revision: number;
      readonly position: number;
      readonly createdMs: number | null;
    }
  | { readonly kind: 'wrong-revision' | 'stream-deleted' | 'deadline-passed' }
  | { readonly kind: 'too-large'; readonly maxBytes: number }
  | { readonly kind: 'failed'; readonly reason: string };

/** `next`: where the next page begins. */
interface EmbeddedPage {
  readonly events: readonly EmbeddedEvent[];
  readonly next: number | undefined;
}

interface EmbeddedStreamPage extends EmbeddedPage {
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
