import { setImmediate as nextTurn } from 'node:timers/promises';

import type { Timestamp } from '#libs/kernel/clock.ts';
import {
  type DomainEvent,
  NO_EVENTS,
  type StreamEvent,
  type StreamRevision,
  streamRevision,
} from '#libs/kernel/event.ts';
import { StreamGone } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { appendExactly, textOf } from '#libs/platform/eventstore/index.ts';
import {
  type AppendedRun,
  entityKeys,
  type EntityWrite,
  type Projection,
  streamName,
  writeOfAppended,
} from '#libs/platform/readmodel/index.ts';

import type { CommandHandlerOptions, CommandStores } from './command-context.ts';
import type { RecentCommands } from './repeated-command.ts';

/** An entity's state, and the revision and time of the last event that was folded into it. */
export interface Tip<State> {
  readonly state: State;
  readonly revision: StreamRevision;
  /** Null before the first event, and where an event without metadata is the last one. */
  readonly at: Timestamp | null;
}

/**
 * Loads the entities of one category, appends their events, and applies these to the read model. Entities are folded
 * from the snapshots of the read model, so that a cold load costs only the events that came after.
 *
 * Errors: reads throw `Fault` `store_unavailable` when the event store is unavailable, and `StreamGone` when an operator
 * deleted events that the state needs.
 */
export class EntityStream<State, E extends DomainEvent> {
  readonly #projection: Projection<State, E>;
  readonly #stores: CommandStores;
  readonly #options: CommandHandlerOptions;

  constructor(projection: Projection<State, E>, stores: CommandStores, options: CommandHandlerOptions) {
    this.#projection = projection;
    this.#stores = stores;
    this.#options = options;
  }

  /** The entity before its first event. */
  get none(): Tip<State> {
    return { state: this.#projection.fold.initialState, revision: NO_EVENTS, at: null };
  }

  /** The entity at the end of its stream. While Redis is unavailable, the whole stream is folded. */
  async load(id: EntityId, organizationId: EntityId): Promise<Tip<State>> {
    let start = this.none;
    let redisFault: unknown;
    try {
      const projection = this.#projection;
      const keys = entityKeys(projection, organizationId, id);
      const [snapshot] = await this.#stores.readModel.snapshots([{ projection, keys }]);
      // This fold made the snapshot, under a key with the version of its shape.
      if (snapshot) start = { state: snapshot.state as State, revision: snapshot.revision, at: null };
    } catch (error) {
      redisFault = error;
      this.#options.onApplyFailure?.(error);
    }
    return this.readTail(id, start).catch((error: unknown) => {
      // A truncated stream can be folded from its snapshot alone.
      throw error instanceof StreamGone && redisFault !== undefined ? redisFault : error;
    });
  }

  /**
   * Folds the events after `from`, and notes their commands in `recent`. Where `from` lacks its time, its last event is
   * read as well: snapshots have no times.
   */
  async readTail(id: EntityId, from: Tip<State>, recent?: RecentCommands): Promise<Tip<State>> {
    const { category, codec, fold } = this.#projection;
    let { state, revision, at } = from;
    const first = streamRevision(at === null ? Math.max(0, revision) : revision + 1);
    const needs = streamRevision(revision + 1);
    for await (const stored of this.#stores.store.readStream(streamName(category, id), { from: first, needs })) {
      at = latestTime(at, textOf(stored.metadata, 'at') ?? null);
      if (stored.revision <= revision) continue;
      const event = codec.decode(stored);
      if (event !== null) state = fold.evolve(state, event);
      recent?.note(stored.metadata);
      revision = stored.revision;
    }
    return { state, revision, at };
  }

  /**
   * Appends events that were decided on `before`, and prepares their writes while they are on their way.
   *
   * @returns null on a conflict; else a function that applies the events, so that callers can read what they wrote. Its
   *   failures are only reported
   */
  async append(
    id: EntityId,
    before: Tip<State>,
    { events, after }: { readonly events: readonly StreamEvent<E>[]; readonly after: Tip<State> },
  ): Promise<(() => Promise<void>) | null> {
    const [first, ...later] = events;
    if (first === undefined) return async () => undefined;
    const { organizationId } = first.metadata;
    const run: AppendedRun<State, E> = {
      organizationId,
      id,
      before: before.state,
      after: after.state,
      events: [first, ...later],
    };
    const stream = streamName(this.#projection.category, id);
    const [isAppended, write] = await Promise.all([
      appendExactly(this.#stores, stream, before.revision, events),
      this.#prepare(run),
    ]);
    return isAppended ? () => this.#apply(run, write) : null;
  }

  /** In the next turn of the event loop: this one sends the append. Undefined after an error, which applying throws again. */
  async #prepare(run: AppendedRun<State, E>): Promise<EntityWrite | undefined> {
    await nextTurn();
    try {
      return writeOfAppended(this.#projection, run);
    } catch {
      return undefined;
    }
  }

  async #apply(run: AppendedRun<State, E>, write: EntityWrite | undefined): Promise<void> {
    try {
      await this.#stores.projector.applyAppended(this.#projection, run, write);
    } catch (error) {
      // The projector will apply the events from the log, and a read can wait for their position.
      this.#options.onApplyFailure?.(error);
    }
  }

  /** Applies what the read model lacks of the stream. Failures are only reported. */
  async catchUp(id: EntityId, organizationId: EntityId): Promise<void> {
    try {
      await this.#stores.projector.catchUp(this.#projection.category, organizationId, id);
    } catch (error) {
      this.#options.onApplyFailure?.(error);
    }
  }
}

/** The later one; null for an event without a time. Both are in UTC with milliseconds, so they sort as text. */
export function latestTime<T extends Timestamp | null>(one: Timestamp | null, other: T): Timestamp | T {
  return one !== null && (other === null || one > other) ? one : other;
}
