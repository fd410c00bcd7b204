import type { Timestamp } from '#libs/kernel/clock.ts';
import type { Fold } from '#libs/kernel/decider.ts';
import {
  type DomainEvent,
  NO_EVENTS,
  type StreamEvent,
  type StreamRevision,
  streamRevision,
  type EventMetadata,
} from '#libs/kernel/event.ts';
import { type EntityId, eventIdOf } from '#libs/kernel/ids.ts';
import {
  type AppendResult,
  type EventCodec,
  type EventStore,
  type ReadStreamOptions,
  type StoredEvent,
  textOf,
  encodeMetadata,
  type EventToAppend,
  type StoreClock,
} from '#libs/platform/eventstore/index.ts';
import { Fault } from '#libs/kernel/faults.ts';

/** How the streams of one category are read: a projection is one, and so is what a reactor calls a process. */
export interface StreamType<State, E extends DomainEvent> {
  /** `run` for `run-<id>`. */
  readonly category: string;
  readonly codec: EventCodec<E>;
  readonly fold: Fold<State, E>;
}

/** A state, and the revision and time of the last event that was folded into it. */
export interface Tip<State> {
  readonly state: State;
  readonly revision: StreamRevision;
  /** Null before the first event, and where an event without metadata is the last one. */
  readonly at: Timestamp | null;
}

export interface FoldOptions<E extends DomainEvent> extends Pick<ReadStreamOptions, 'deadlineMs' | 'limit' | 'needs'> {
  /** The fold ends before the first event for which this is true. */
  readonly until?: (stored: StoredEvent) => boolean;
  /** Called with each event after `from`; null for one of an unknown type. */
  readonly onEvent?: ((stored: StoredEvent, event: StreamEvent<E> | null) => void) | undefined;
}

/** A stream before its first event. */
export function emptyTip<State>({ fold }: { readonly fold: Pick<Fold<State, never>, 'initialState'> }): Tip<State> {
  return { state: fold.initialState, revision: NO_EVENTS, at: null };
}

/**
 * Folds the events of a stream after `from`, to its end. Where `from` lacks its time, its last event is read as well:
 * snapshots have no times.
 *
 * @throws `Fault` `store_unavailable`; `StreamGone` for events that an operator deleted; CorruptEventError
 */
export async function foldTail<State, E extends DomainEvent>(
  store: Pick<EventStore, 'readStream'>,
  { category, codec, fold }: StreamType<State, E>,
  id: EntityId,
  from: Tip<State>,
  { until, onEvent, ...options }: FoldOptions<E> = {},
): Promise<Tip<State>> {
  let { state, revision, at } = from;
  const first = streamRevision(at === null ? Math.max(0, revision) : revision + 1);
  const needs = streamRevision(revision + 1);
  for await (const stored of store.readStream(streamName(category, id), { from: first, needs, ...options })) {
    if (until?.(stored) === true) break;
    at = latestTime(at, textOf(stored.metadata, 'at') ?? null);
    if (stored.revision <= revision) continue;
    const event = codec.decode(stored);
    if (event !== null) state = fold.evolve(state, event);
    revision = stored.revision;
    onEvent?.(stored, event);
  }
  return { state, revision, at };
}

/**
 * The state of a stream as the log has it, without Redis. For short streams, where a read model that lags behind would
 * not do.
 *
 * @throws as {@link foldTail}
 */
export async function foldStream<State, E extends DomainEvent>(
  store: Pick<EventStore, 'readStream'>,
  type: StreamType<State, E>,
  id: EntityId,
  options: Pick<ReadStreamOptions, 'deadlineMs'> = {},
): Promise<State> {
  return (await foldTail(store, type, id, emptyTip(type), options)).state;
}

/** A sequence (a stream revision plus one; 0 is before anything), or an RFC 3339 time. */
export type HistoryPoint = { readonly sequence: number } | { readonly at: string };

/**
 * The state at a point of a stream's history, by the events up to there. For short streams, where `withHistory` would cost
 * more than it saves. A point after the end of the stream is its end.
 *
 * @returns null if there are more than `maxEvents` events up to the point
 * @throws as {@link foldTail}
 */
export async function foldUntil<State, E extends DomainEvent>(
  store: Pick<EventStore, 'readStream'>,
  type: StreamType<State, E>,
  id: EntityId,
  { point, maxEvents }: { readonly point: HistoryPoint; readonly maxEvents: number },
): Promise<{ readonly state: State } | null> {
  const events = 'sequence' in point ? point.sequence : Number.POSITIVE_INFINITY;
  const untilMs = 'at' in point ? Date.parse(point.at) : Number.POSITIVE_INFINITY;
  if (events === 0) return emptyTip(type);
  const tip = await foldTail(store, type, id, emptyTip(type), {
    limit: Math.min(events, maxEvents + 1),
    // An event without a time counts as simultaneous with the one before it.
    until: ({ metadata }) => Date.parse(textOf(metadata, 'at') ?? '') > untilMs,
  });
  return tip.revision < maxEvents ? tip : null;
}

/** The later one; null for an event without a time. Both are in UTC with milliseconds, so they sort as text. */
export function latestTime<T extends Timestamp | null>(one: Timestamp | null, other: T): Timestamp | T {
  return one !== null && (other === null || one > other) ? one : other;
}

/** `channel-0198…` of `channel` and `0198…`. */
export function streamName(category: string, id: EntityId): string {
  return `${category}-${id}`;
}

/** The category and the id of a stream name; the id may contain dashes. */
export function parseStreamName(stream: string): { readonly category: string; readonly id: EntityId } {
  const dash = stream.indexOf('-');
  return { category: stream.slice(0, dash), id: stream.slice(dash + 1) };
}

type Appended = Extract<AppendResult, { readonly kind: 'appended' }>;
type Appending = EventToAppend & { readonly revision: StreamRevision };

/**
 * Appends at exactly the expected revision, and measures this process's clock. An append without an answer is sent once
 * more: the ids are the same at the same expected revision, so the store acknowledges it again if the first one was
 * written.
 *
 * @returns null on a conflict
 * @throws `Fault` of `EventStore.append`
 */
export async function appendExactly(
  { store, clock }: { readonly store: EventStore; readonly clock: StoreClock },
  stream: string,
  expected: StreamRevision,
  events: readonly Appending[],
): Promise<Appended | null> {
  const [first] = events;
  if (first === undefined) return { kind: 'appended', revision: expected, position: null };
  const sentAtMs = Date.now();
  const append = async (): Promise<Appended | null> => {
    const result = await store.append(stream, expected, events);
    return result.kind === 'appended' ? result : null;
  };
  try {
    const appended = await append();
    if (appended !== null) void clock.measure(stream, first, sentAtMs);
    return appended;
  } catch (unknown) {
    if (!(unknown instanceof Fault) || unknown.code !== 'outcome_unknown') throw unknown;
    return await append().catch((error: unknown) => {
      // A fault of the second append does not tell whether the first one was written.
      throw error instanceof Fault ? unknown : error;
    });
  }
}

/**
 * Events with their revisions and ids, and with their data and metadata as encoded for storage.
 *
 * @param at.source what the ids are derived from
 * @throws TypeError for events that do not fit their schema
 */
export function eventsToAppend<E extends DomainEvent>(
  codec: EventCodec<E>,
  events: readonly E[],
  at: { readonly after: StreamRevision; readonly source: EntityId; readonly metadata: EventMetadata },
): StreamEvent<E>[] {
  const metadata = encodeMetadata(at.metadata);
  return events.map((event, index) => ({
    ...event,
    data: codec.encode(event),
    id: eventIdOf(at.source, index),
    revision: streamRevision(at.after + 1 + index),
    metadata,
  }));
}
