import type { Fold } from '#libs/kernel/decider.ts';
import { sequenceOf } from '#libs/kernel/event.ts';
import type { DomainEvent, StreamEvent } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { EventCodec } from '#libs/platform/eventstore/index.ts';
import { eventFrame } from '#libs/platform/live/index.ts';
import type { EventContent, EventFrame } from '#libs/platform/live/index.ts';

import { listKeys } from './read-model.keys.ts';
import type { EntityKeys, ReadModelName } from './read-model.keys.ts';
import type { IndexedEntry, WriteOperation } from './read-model.ts';

/** Facets of an entity in a list of its category; without facets, the entity is removed from the list. */
export interface ListEntry {
  /** The organization that the list belongs to, or `ALL_ORGANIZATIONS`. */
  readonly owner: EntityId;
  readonly member: EntityId;
  readonly facets: readonly string[];
}

/** Writes of a run of events for an entity: absolute values as of the last event. */
export interface ProjectedWrites {
  readonly operations: readonly WriteOperation[];
  readonly lists: readonly ListEntry[];
}

/** Input of a projection: a run of events, and the state before and after it. */
export interface ProjectedRun<State, E extends DomainEvent> {
  readonly organizationId: EntityId;
  readonly id: EntityId;
  readonly before: State;
  readonly after: State;
  readonly events: readonly StreamEvent<E>[];
}

/**
 * How the streams of one category become read models. The state must survive JSON: its snapshot in Redis is
 * where a cold command and a cold projector start.
 */
export interface Projection<State, E extends DomainEvent> extends ReadModelName {
  readonly codec: EventCodec<E>;
  readonly fold: Fold<State, E>;
  /** Writes of the run. The projector writes the state itself. */
  project(run: ProjectedRun<State, E>, keys: EntityKeys): ProjectedWrites;
  /**
   * Live frames of the run: one for each event, in order. Pure, and independent of the run that an event is in. Lazy,
   * because a publication takes frames only up to a size.
   */
  readonly frames?: (run: ProjectedRun<State, E>) => Iterable<EventFrame>;
}

/** One event, and the state before and after it. */
export interface ProjectedEvent<State, E extends DomainEvent> extends Omit<ProjectedRun<State, E>, 'events'> {
  readonly event: StreamEvent<E>;
}

/** The same projection, with a frame for each event, whose content is `contentOf(event)`. */
export function withFrames<State, E extends DomainEvent>(
  projection: Projection<State, E>,
  contentOf: (one: ProjectedEvent<State, E>) => EventContent,
): Projection<State, E> {
  return {
    ...projection,
    *frames({ organizationId, id, before, events }) {
      let state = before;
      for (const event of events) {
        const after = projection.fold.evolve(state, event);
        const content = contentOf({ organizationId, id, before: state, after, event });
        yield eventFrame(sequenceOf(event.revision), event.metadata.at, content);
        state = after;
      }
    },
  };
}

/** All writes of a run: those of the projection, and the state if it has changed. */
export function projectRun<State, E extends DomainEvent>(
  projection: Projection<State, E>,
  run: ProjectedRun<State, E>,
  keys: EntityKeys,
): { readonly operations: readonly WriteOperation[]; readonly lists: readonly IndexedEntry[] } {
  const { operations, lists: entries } = projection.project(run, keys);
  const lists = entries.map(({ owner, ...entry }) => ({ ...entry, list: listKeys(projection, owner) }));
  // A fold returns the same object for an event that does not change the state.
  if (run.after === run.before) return { operations, lists };
  const state: WriteOperation = { command: 'SET', key: keys.state, args: [JSON.stringify(run.after)] };
  return { operations: [state, ...operations], lists };
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
