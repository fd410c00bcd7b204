import type { Timestamp } from './clock.ts';
import type { EntityId } from './ids.ts';

declare const revision: unique symbol;
declare const position: unique symbol;
declare const sequence: unique symbol;

/** Number of an event in its stream, from 0; `-1` for a stream without events. */
export type StreamRevision = number & { readonly [revision]: true };

/** Position of an event in the whole log (`$all`): EventStoreDB's pair of 64-bit offsets. */
export interface GlobalPosition {
  readonly [position]?: true;
  readonly commit: bigint;
  readonly prepare: bigint;
}

/** Public number of an event in a channel: the stream revision plus one; 0 is before all events. */
export type ChannelSequence = number & { readonly [sequence]: true };

export const NO_EVENTS = -1 as StreamRevision;

export function streamRevision(value: number): StreamRevision {
  if (!Number.isSafeInteger(value) || value < -1) throw new RangeError(`no stream revision: ${value}`);
  return value as StreamRevision;
}

export function sequenceOf(atRevision: StreamRevision): ChannelSequence {
  return (Number(atRevision) + 1) as ChannelSequence;
}

/** The cause of an event: a principal of the organization, or Parley itself. */
export interface Actor {
  readonly type: 'user' | 'service' | 'system';
  readonly id: string;
  /** The API key of the request, or the registered key that verified its token. Absent: none, or an event of before. */
  readonly keyId?: string | undefined;
}

/** Metadata of every event. `at` is the time of the decision. */
export interface EventMetadata {
  readonly at: Timestamp;
  readonly organizationId: EntityId;
  readonly actor: Actor;
  readonly commandId: EntityId;
  readonly $correlationId: string;
  readonly $causationId: string;
  readonly traceparent?: string | undefined;
  readonly idempotencyKey?: string | undefined;
}

/** The shape of every event of the domain: a versioned past-tense name and JSON data. */
export interface DomainEvent {
  readonly type: `${string}.v${number}`;
  readonly data: object;
}

/** An event with its revision, whether it was read or is about to be appended. */
export type StreamEvent<E extends DomainEvent = DomainEvent> = E & {
  readonly id: string;
  readonly revision: StreamRevision;
  readonly metadata: EventMetadata;
};
