import { sequenceOf, type DomainEvent, type StreamEvent, type StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { actorIn, type StoredEvent } from '#libs/platform/eventstore/index.ts';
import {
  encodeEvent,
  encodeHead,
  entityTopic,
  type EventContent,
  eventFrame,
  type EventFrame,
  FRAME_FLAG,
  joinLines,
  UNKNOWN_EVENT,
} from '#libs/platform/live/index.ts';
import type { StreamType } from '#libs/platform/streams/index.ts';

import { listKeys, stateKeys, type EntityKeys } from './read-model.keys.ts';
import type { IndexedEntry, Publication, WriteOperation } from './read-model.ts';
import type { StoredEntityType, StoredState } from './snapshot.ts';

/** Facets of an entity in a list of its category; without facets, the entity is removed from the list. */
export interface ListEntry {
  /** The organization that the list belongs to, or `ALL_ORGANIZATIONS`. */
  readonly owner: EntityId;
  readonly member: EntityId;
  readonly facets: readonly string[];
  /** Of the last event behind the entry. */
  readonly revision: StreamRevision;
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
  /** Earlier events of the run were applied before: writes again what may be missing. Default: false. */
  readonly isRepair?: boolean;
}

/**
 * How the streams of one category become read models. The state must survive JSON, or be packed as `storedState` has it:
 * its snapshot in Redis is where a cold command and a cold projector start.
 */
export interface Projection<State, E extends DomainEvent> extends StoredEntityType, StreamType<State, E> {
  /** How the state is stored as a part of a composed one. Default: as JSON. */
  readonly storedState?: StoredState<unknown>;
  /** Writes of the run. The projector writes the state itself. */
  project(run: ProjectedRun<State, E>, keys: EntityKeys): ProjectedWrites;
  /**
   * Live frames of the run: one for each event, in order. Pure, and independent of the run that an event is in. Lazy,
   * because a publication takes frames only up to a size.
   */
  readonly frames?: (run: ProjectedRun<State, E>) => Iterable<EventFrame>;
}

export interface ProjectedEvent<State, E extends DomainEvent> extends Omit<ProjectedRun<State, E>, 'events'> {
  readonly event: StreamEvent<E>;
}

/** The projection with a frame for each event, whose content is `contentOf(event)`. */
export function withFrames<State, E extends DomainEvent>(
  projection: Projection<State, E>,
  contentOf: (one: ProjectedEvent<State, E>) => EventContent,
): Projection<State, E> {
  return {
    ...projection,
    *frames({ organizationId, id, before, after: last, events }) {
      let state = before;
      for (const [index, event] of events.entries()) {
        const after = index === events.length - 1 ? last : projection.fold.evolve(state, event);
        const content = contentOf({ organizationId, id, before: state, after, event });
        yield eventFrame(sequenceOf(event.revision), event.metadata, content);
        state = after;
      }
    },
  };
}

/**
 * The frame of a stored event, the same bytes as those that are published live, and the state after it.
 *
 * @throws CorruptEventError; TypeError if the projection has no frames
 */
export function frameOfStored<State, E extends DomainEvent>(
  { codec, fold, frames }: Projection<State, E>,
  { organizationId, id }: { readonly organizationId: EntityId; readonly id: EntityId },
  before: State,
  stored: StoredEvent,
): [EventFrame, State] {
  const event = codec.types.has(stored.type) ? codec.decode(stored) : null;
  if (event === null) return [unknownFrame(stored), before];
  const after = fold.evolve(before, event);
  for (const frame of frames?.({ organizationId, id, before, after, events: [event] }) ?? []) return [frame, after];
  throw new TypeError(`${stored.type} has no frame`);
}

/** The frame of an event of a newer version of Parley, whose type this one does not know. */
function unknownFrame({ revision, metadata, createdMs }: StoredEvent): EventFrame {
  const at: unknown = typeof metadata === 'object' && metadata !== null ? Reflect.get(metadata, 'at') : undefined;
  const time = typeof at === 'string' ? at : new Date(createdMs).toISOString();
  return eventFrame(
    sequenceOf(revision),
    { at: time, actor: actorIn(metadata) },
    { type: UNKNOWN_EVENT, json: 'null' },
  );
}

/** All writes of a run: those of the projection, and the state if it has changed. */
export function projectRun<State, E extends DomainEvent>(
  projection: Projection<State, E>,
  run: ProjectedRun<State, E>,
  keys: EntityKeys,
): { readonly operations: readonly WriteOperation[]; readonly lists: readonly IndexedEntry[] } {
  const { operations, lists: entries } = projection.project(run, keys);
  const lists = entries.map(({ owner, ...entry }) => ({ ...entry, list: listKeys(projection, owner) }));
  return { operations: [...stateWrites(projection, run, keys), ...operations], lists };
}

function stateWrites<State, E extends DomainEvent>(
  { parts, storedParts, fold }: Projection<State, E>,
  { before, after, events }: ProjectedRun<State, E>,
  keys: EntityKeys,
): WriteOperation[] {
  // A fold returns the same object for an event that does not change the state.
  if (after === before) return [];
  const partOf = (state: State, index: number): unknown =>
    parts ? Reflect.get(Object(state), parts[index] ?? '') : state;
  return stateKeys({ parts }, keys).flatMap((key, index): WriteOperation[] => {
    const [partBefore, part] = [partOf(before, index), partOf(after, index)];
    const isFirst = before === fold.initialState;
    if (!isFirst && part === partBefore) return [];
    const packing = storedParts?.[parts?.[index] ?? ''];
    if (packing === undefined) return [{ command: 'SET', key, args: [JSON.stringify(part)] }];
    const packed = JSON.stringify(packing.pack(part));
    // Of several events, another process may have applied the first ones, which may have changed it for a while.
    const isStored = !isFirst && events.length === 1 && packed === JSON.stringify(packing.pack(partBefore));
    return isStored ? [] : [{ command: 'SET', key, args: [packed] }];
  });
}

/** The events of any append fit; frames that contain earlier, large values may not. */
const MAX_MESSAGE_CHARACTERS = 1024 * 1024;

/**
 * The frames of events that this process has appended. No other process publishes them, so they are published even if
 * another process has applied the run already. Frames beyond the limit are left out: subscribers read them from the log.
 */
export function publicationOfAppended<State, E extends DomainEvent>(
  projection: Projection<State, E>,
  run: ProjectedRun<State, E>,
  last: StreamRevision,
): Publication | null {
  if (projection.frames === undefined) return null;
  const lines: string[] = [];
  let length = 0;
  let flags = 0;
  for (const frame of projection.frames(run)) {
    flags |= frame.flags;
    length += frame.json.length;
    if (length > MAX_MESSAGE_CHARACTERS) {
      lines.push(encodeHead(sequenceOf(last)));
      break;
    }
    lines.push(encodeEvent(frame));
  }
  const topic = entityTopic(projection.category, run.organizationId, run.id);
  const followsEarlier = (flags & FRAME_FLAG.endsText) !== 0;
  return { topic, message: joinLines(lines), alsoOfDuplicates: true, followsEarlier };
}

/** The sequence that the read model reflects now: the process that appended may have died before it published. */
export function publicationOfStored(
  { category, frames }: Pick<Projection<never, never>, 'category' | 'frames'>,
  { organizationId, id }: { readonly organizationId: EntityId; readonly id: EntityId },
  last: StreamRevision,
): Publication | null {
  if (frames === undefined) return null;
  const topic = entityTopic(category, organizationId, id);
  return { topic, message: encodeHead(sequenceOf(last)), alsoOfDuplicates: false };
}
