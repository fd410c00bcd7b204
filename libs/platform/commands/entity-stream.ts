import { setImmediate as nextIteration } from 'node:timers/promises';

import type { DomainEvent } from '#libs/kernel/event.ts';
import { StreamGone } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import {
  type AppendedRun,
  entityKeys,
  type EntityWrite,
  type Projection,
  writeOfAppended,
} from '#libs/platform/readmodel/index.ts';
import { appendExactly, emptyTip, foldTail, streamName, type Tip } from '#libs/platform/streams/index.ts';

import type { CommandHandlerOptions, CommandStores } from './command-context.ts';
import type { Decided } from './decide-batch.ts';
import type { RecentCommands } from './repeated-command.ts';

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

  /** The entity at the end of its stream. While Redis is unavailable, the whole stream is folded. */
  async load(id: EntityId, organizationId: EntityId): Promise<Tip<State>> {
    let start: Tip<State> = emptyTip(this.#projection);
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

  /** Folds the events after `from`, and notes their commands in `recent`. */
  readTail(id: EntityId, from: Tip<State>, recent?: RecentCommands): Promise<Tip<State>> {
    const onEvent = recent && ((stored: StoredEvent) => recent.note(stored));
    return foldTail(this.#stores.store, this.#projection, id, from, { onEvent });
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
    { events, after, isPast }: Pick<Decided<State, E>, 'events' | 'after' | 'isPast'>,
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
      isPast,
    };
    const stream = streamName(this.#projection.category, id);
    const [isAppended, write] = await Promise.all([
      appendExactly(this.#stores, stream, before.revision, events),
      this.#prepare(run),
    ]);
    return isAppended ? () => this.#apply(run, write) : null;
  }

  /** In the next iteration of the event loop: this one sends the append. Undefined after an error, which applying throws again. */
  async #prepare(run: AppendedRun<State, E>): Promise<EntityWrite | undefined> {
    await nextIteration();
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
