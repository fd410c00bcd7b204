import type { DomainEvent, StreamRevision } from '#libs/kernel/event.ts';
import { NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import { entityKeys, streamName } from '#libs/platform/readmodel/index.ts';
import type { Projection, ReadModel } from '#libs/platform/readmodel/index.ts';

import type { RecentCommands } from './repeated-command.ts';

/** An entity's state, and the revision of its stream that it was folded up to. */
export interface Tip<State> {
  readonly state: State;
  readonly revision: StreamRevision;
}

/**
 * Folds entities from where the read model stands, so that the cost of a cold load is that of the events
 * that it lacks. All methods throw `Fault` `store_unavailable` when the event store is away.
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
    const { category, fold } = this.#projection;
    let start: Tip<State> = { state: fold.initialState, revision: NO_EVENTS };
    try {
      const [snapshot] = await this.#stores.readModel.snapshots([entityKeys(category, organizationId, id)]);
      // The snapshot was made by this very fold, in a key that carries the version of its shape.
      if (snapshot) start = { state: snapshot.state as State, revision: snapshot.revision };
    } catch (error) {
      this.#onRedisAway(error);
    }
    return this.readTail(id, start);
  }

  /** Folds what came after `from`, and takes note of the commands it came from. */
  async readTail(id: EntityId, from: Tip<State>, recent?: RecentCommands): Promise<Tip<State>> {
    const { category, codec, fold } = this.#projection;
    let { state, revision } = from;
    const next = streamRevision(revision + 1);
    for await (const stored of this.#stores.store.readStream(streamName(category, id), { from: next })) {
      const event = codec.decode(stored);
      if (event !== null) state = fold.evolve(state, event);
      recent?.note(stored.metadata);
      revision = stored.revision;
    }
    return { state, revision };
  }
}
