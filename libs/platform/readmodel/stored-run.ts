import { foldEvents } from '#libs/kernel/decider.ts';
import { NO_EVENTS, type StreamRevision, streamRevision } from '#libs/kernel/event.ts';
import type { EventStore, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { parseStreamName } from '#libs/platform/streams/index.ts';

import { type Projection, projectRun, publicationOfStored } from './projection.ts';
import { entityKeys, type EntityKeys, type EntityRef } from './read-model.keys.ts';
import type { EntityWrite } from './read-model.ts';
import type { Snapshot } from './snapshot.ts';
import { organizationOf, ownerOf } from './stream-owner.ts';

/** A projection of any category, found by the category of a stream. */
// eslint-disable-next-line typescript/no-explicit-any -- the state type is private to each projection
export type AnyProjection = Projection<any, any>;

/** Events of one stream as the log has them, ascending. */
export interface StoredRun extends Omit<EntityRef, 'category'> {
  readonly projection: AnyProjection;
  readonly keys: EntityKeys;
  readonly events: readonly StoredEvent[];
  readonly hasHole?: boolean;
}

/** Null for a stream without a projection, and for one of another application. */
export async function runOf(
  store: Pick<EventStore, 'readStream'>,
  projections: ReadonlyMap<string, AnyProjection>,
  stream: string,
  events: readonly StoredEvent[],
): Promise<StoredRun | null> {
  const { category, id } = parseStreamName(stream);
  const projection = projections.get(category);
  if (projection === undefined) return null;
  let organizationId = firstOf(events, organizationOf);
  // Foreign events alone, which move an entity's revision on, and nothing else.
  if (organizationId === null && (events[0]?.revision ?? 0) > 0) organizationId = await ownerOf(store, stream);
  if (organizationId === null) return null;
  const hasHole = events.some(({ revision }, index) => index > 0 && revision > (events[index - 1]?.revision ?? 0) + 1);
  return { projection, organizationId, id, keys: entityKeys(projection, organizationId, id), events, hasHole };
}

/** The first result that is not null. */
function firstOf<T, R>(items: readonly T[], resultOf: (item: T) => R | null): R | null {
  for (const item of items) {
    const result = resultOf(item);
    if (result !== null) return result;
  }
  return null;
}

export function lastRevision(run: StoredRun): StreamRevision {
  return run.events.at(-1)?.revision ?? NO_EVENTS;
}

export type FoldedRun =
  { readonly kind: 'new' | 'known'; readonly write: EntityWrite; readonly after: unknown } | { readonly kind: 'gap' };

export const GAP: FoldedRun = { kind: 'gap' };

/** Folds the part of the run that the snapshot does not have; `gap` if events between are missing. */
export function foldRun(run: StoredRun, snapshot: Snapshot | null): FoldedRun {
  const { projection, organizationId, id, keys } = run;
  const before: unknown = snapshot === null ? projection.fold.initialState : snapshot.state;
  const next = (snapshot?.revision ?? NO_EVENTS) + 1;
  const stored = run.events.filter((event) => event.revision >= next);
  const [oldest] = stored;
  if (oldest !== undefined && oldest.revision > next) return GAP;
  const events = stored.map((event) => projection.codec.decode(event)).filter((event) => event !== null);
  const after: unknown = foldEvents(projection.fold, before, events);
  const isRepair = stored.length < run.events.length;
  const writes = projectRun(projection, { organizationId, id, before, after, events, isRepair }, keys);
  // Already applied: a run without events, whose write is a duplicate, and only the list entries are written. Where Redis has
  // lost the entity meanwhile, it is a gap: the operations are not those of the last event.
  const last = oldest === undefined ? streamRevision(next - 1) : lastRevision(run);
  const first = oldest?.revision ?? streamRevision(next);
  const kind = oldest === undefined ? 'known' : 'new';
  const publication = kind === 'new' ? publicationOfStored(projection, run, last) : null;
  return { kind, write: { revisionKey: keys.revision, first, last, ...writes, publication }, after };
}
