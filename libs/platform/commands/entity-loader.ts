import type { Timestamp } from '#libs/kernel/clock.ts';
import type { DomainEvent, StreamRevision } from '#libs/kernel/event.ts';
import { NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import { entityKeys, streamName } from '#libs/platform/readmodel/index.ts';
import type { Projection, ReadModel } from '#libs/platform/readmodel/index.ts';

import { latestTime } from './event-times.ts';
import { textOf } from './repeated-command.ts';
import type { RecentCommands } from './repeated-command.ts';

/** An entity's state, and the revision and time of the last event that was folded into it. */
export interface Tip<State> {
  readonly state: State;
  readonly revision: StreamRevision;
  /** Null before the first event, and where an event without metadata is the last one. */
  readonly at: Timestamp | null;
}

/**
 * Folds entities from the snapshots of the read model, so that a cold load costs only the events that came after.
 * All methods throw `Fault` `store_unavailable` when the event store is unavailable.
 */
export class EntityLoader<State, E extends DomainEvent> {
  readonly #projection: Projection<State, E>;
  readonly #stores: { readonly store: EventStore; readonly readModel: ReadModel };
  readonly #onRedisAway: (error: unknown) => void;

  constructor(
    projection: Projection<State, E>,
    stores: { readonly store: EventStore; readonly readModel: ReadModel },
    onRedisAway: (error: unknown) => void,
  ) {
    this.#projection = projection;
    this.#stores = stores;
    this.#onRedisAway = onRedisAway;
  }

  /** The entity at the end of its stream. Without Redis the whole stream is folded: slower, and just as right. */
  async load(id: EntityId, organizationId: EntityId): Promise<Tip<State>> {
    const { fold } = this.#projection;
    let start: Tip<State> = { state: fold.initialState, revision: NO_EVENTS, at: null };
    try {
      const [snapshot] = await this.#stores.readModel.snapshots([entityKeys(this.#projection, organizationId, id)]);
      // The snapshot was made by this very fold, in a key that carries the version of its shape.
      if (snapshot) start = { state: snapshot.state as State, revision: snapshot.revision, at: null };
    } catch (error) {
      this.#onRedisAway(error);
    }
    return this.readTail(id, start);
  }

  /**
   * Folds the events after `from`, and notes their commands in `recent`. Where `from` lacks its time, its last event is
   * read as well: snapshots have no times.
   */
  async readTail(id: EntityId, from: Tip<State>, recent?: RecentCommands): Promise<Tip<State>> {
    const { category, codec, fold } = this.#projection;
    let { state, revision, at } = from;
    const first = streamRevision(at === null ? Math.max(0, revision) : revision + 1);
    for await (const stored of this.#stores.store.readStream(streamName(category, id), { from: first })) {
      at = latestTime(at, textOf(stored.metadata, 'at') ?? null);
      if (stored.revision <= revision) continue;
      const event = codec.decode(stored);
      if (event !== null) state = fold.evolve(state, event);
      recent?.note(stored.metadata);
      revision = stored.revision;
    }
    return { state, revision, at };
  }
}
