import { accept, refuse, type Decision, type Rejection } from '#libs/kernel/decider.ts';
import { systemClock } from '#libs/kernel/clock.ts';
import type { Actor, DomainEvent, StreamRevision } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import { newId, type EntityId } from '#libs/kernel/ids.ts';
import {
  type CommandContext,
  CommandHandler,
  type CommandHandlerOptions,
  type CommandResult,
  type CommandStores,
} from '#libs/platform/commands/index.ts';
import type { LiveSource } from '#libs/platform/live/index.ts';
import {
  type Document,
  type DocumentPage,
  type EntityReader,
  type EntityRef,
  foldedBefore,
  type HistoryPoint,
  type ListPage,
  type StatePage,
  StreamFrames,
} from '#libs/platform/readmodel/index.ts';
import { foldStream, foldUntil } from '#libs/platform/streams/index.ts';

import type { EventStreams } from './event-streams.ts';
import {
  type AnyState,
  entityOf,
  type EntityOf,
  type EntityType,
  type Facets,
  facetsOfFilter,
  type FilterOf,
  isDeleted,
} from './entity.ts';

/** The stores that entities live in, and how their commands run. */
export interface EntityCore extends CommandStores {
  readonly reader: EntityReader;
  readonly commandOptions?: CommandHandlerOptions;
  /** For entities whose events clients follow. */
  readonly eventStreams?: EventStreams;
}

/** Events of an entity that a read of its past folds: it holds one of two places for such reads meanwhile. */
const MAX_PAST_EVENTS = 5_000;

/** Of a read in the form of a command without events, which is stored nowhere. */
const READER: Actor = { type: 'system', id: 'reader' };

/** The organization has no such entity: there is none, or it belongs to another organization. */
export type NotFound = { readonly reason: 'not_found' };

/** An entity after a command, at the revision of its stream. */
export type EntityResult<Entity, R extends Rejection = never> =
  | {
      readonly ok: true;
      readonly entity: Entity;
      readonly revision: StreamRevision;
      /** False if the command had nothing to do. */
      readonly isChanged: boolean;
    }
  | { readonly ok: false; readonly rejection: R };

type EntityRunner<State, E extends DomainEvent> = Pick<CommandHandler<State, E>, 'handle' | 'isKnown'>;

/** A stream of more than the entity: what runs the commands in it, and the name of the entity in the state of the stream. */
export interface SharedStream<State, E extends DomainEvent> {
  readonly runner: EntityRunner<State, E>;
  readonly part: string;
}

/**
 * The entities of one kind: their commands and reads. Commands throw the faults of `CommandHandler.handle` and honour
 * `ifMatch` of their context; reads throw the faults of `EntityReader`.
 *
 * Guarantees: another organization's entity is never read, decided on or changed; it is answered as a missing one.
 */
export class Entities<State extends AnyState, E extends DomainEvent, F extends Facets> {
  readonly type: EntityType<State, E, F>;
  readonly eventStreams: EventStreams | undefined;
  /** The events of the entities, for their event streams. */
  readonly source: LiveSource;
  readonly #runner: EntityRunner<State, E>;
  protected readonly store: EntityCore['store'];
  readonly #reader: EntityReader;
  readonly #part: string | undefined;

  constructor(type: EntityType<State, E, F>, core: EntityCore, shared?: SharedStream<State, E>) {
    this.type = type;
    this.store = core.store;
    this.#reader = core.reader;
    this.eventStreams = core.eventStreams;
    const log = new StreamFrames(core.store, type.projection, (of, next) => this.#stateBefore(of, next));
    this.source = { log, continues: true };
    this.#part = shared?.part;
    const revisionOf = (state: State) => entityOf(state)?.changedRevision ?? null;
    this.#runner = shared?.runner ?? new CommandHandler(type.projection, core, revisionOf, core.commandOptions);
  }

  /** Creates the entity. Its id is new: an entity that exists was created by an earlier run of this very command. */
  create(context: CommandContext, id: EntityId, event: E): Promise<EntityResult<EntityOf<State>>> {
    return this.run(context, id, (state) => (state === null ? accept(event) : accept()));
  }

  /** Runs a command on an entity of the organization that is not deleted. */
  update<R extends Rejection = never>(
    context: CommandContext,
    id: EntityId,
    decide: (entity: EntityOf<State>) => Decision<E, R>,
  ): Promise<EntityResult<EntityOf<State>, R | NotFound>> {
    const { organizationId } = this.#within(context, id);
    return this.run<R | NotFound>(context, id, (state) => {
      const entity = entityOf(state);
      if (entity?.organizationId !== organizationId || isDeleted(entity)) return refuse({ reason: 'not_found' });
      return decide(entity);
    });
  }

  /** Runs a command on whatever state the stream has. What it accepts must leave an entity behind. */
  async run<R extends Rejection = never>(
    context: CommandContext,
    id: EntityId,
    decide: (state: State) => Decision<E, R>,
  ): Promise<EntityResult<EntityOf<State>, R>> {
    return this.resultOf(await this.#runner.handle<R>(id, this.#within(context, id), decide));
  }

  /** The result of a command that another runner ran on the stream. */
  resultOf<R extends Rejection>(result: CommandResult<State, E, R>): EntityResult<EntityOf<State>, R> {
    if (!result.ok) return result;
    const entity = entityOf(result.state);
    if (entity === null) throw new TypeError(`a command left no ${this.type.category} behind`);
    return { ok: true, entity, revision: result.revision, isChanged: result.events.length > 0 };
  }

  /**
   * The state at the end of the stream, or as of `seenRevision` of the context or later, which this process may know without a
   * read; `decide` may change it first, and refuses nothing.
   */
  async current(context: CommandContext, id: EntityId, decide?: (state: State) => Decision<E, never>): Promise<State> {
    let known: { readonly state: State } | undefined;
    const { seenRevision } = context;
    if (decide === undefined && seenRevision !== undefined) {
      this.isKnown(id, seenRevision, (state) => (known ??= { state }) !== undefined);
    }
    if (known !== undefined) return known.state;
    return this.#decidedOn(context, id, decide ?? (() => accept()));
  }

  async #decidedOn(
    context: CommandContext,
    id: EntityId,
    decide: (state: State) => Decision<E, never>,
  ): Promise<State> {
    const result = await this.#runner.handle<never>(id, { ...this.#within(context, id), ifMatch: undefined }, decide);
    if (!result.ok) throw new TypeError('a command that refuses nothing was refused');
    return result.state;
  }

  /** See `CommandHandler.isKnown`. */
  isKnown(id: EntityId, revision: StreamRevision, holds: (state: State) => boolean): boolean {
    return this.#runner.isKnown(id, revision, holds);
  }

  /**
   * The entity as it was last projected, or null if the organization has none; that is confirmed on the log. While Redis
   * is unavailable, the entity is folded from the log: commands need the entities that they name.
   */
  async find(organizationId: EntityId, id: EntityId): Promise<EntityOf<State> | null> {
    try {
      return await this.projected(organizationId, id);
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'store_unavailable') throw error;
      const entity = await this.latest(organizationId, id);
      return entity === null || isDeleted(entity) ? null : entity;
    }
  }

  /** As {@link find}, for reads of the API, which answer 503 while Redis is unavailable. */
  async projected(organizationId: EntityId, id: EntityId): Promise<EntityOf<State> | null> {
    // Written by the fold of this type, under keys that carry the version of its shape.
    const state = await this.#reader.state(this.type.category, organizationId, id, this.#part);
    const entity = entityOf(state as State);
    return entity?.organizationId !== organizationId || isDeleted(entity) ? null : entity;
  }

  /**
   * The entity at the end of its stream, also a deleted one; null if the organization has none. Read by a command without
   * events, which shares the state that commands keep.
   */
  async latest(organizationId: EntityId, id: EntityId): Promise<EntityOf<State> | null> {
    const context = { commandId: newId(), organizationId, actor: READER, at: systemClock.now() };
    const entity = entityOf(await this.current(context, id));
    return entity?.organizationId === organizationId ? entity : null;
  }

  /**
   * As {@link latest}, folded from the whole stream in one read: for short streams whose commands other processes run.
   *
   * @throws `Fault` `store_unavailable`
   */
  async inLog(organizationId: EntityId, id: EntityId): Promise<EntityOf<State> | null> {
    const entity = entityOf(await foldStream(this.store, this.type.projection, id));
    return entity?.organizationId === organizationId ? entity : null;
  }

  /** The entity as the API answers it, or null if the organization has none. */
  document(organizationId: EntityId, id: EntityId): Promise<Document | null> {
    return this.#reader.document(this.type.category, organizationId, id);
  }

  /** The organization's entities that match all of the filter, newest first. */
  page(organizationId: EntityId, filter: FilterOf<F>, page: ListPage): Promise<DocumentPage> {
    return this.#reader.page(this.#list(organizationId, filter), page);
  }

  /** The entities of {@link page} themselves, for replies that show more than their documents. */
  async states(organizationId: EntityId, filter: FilterOf<F>, page: ListPage): Promise<StatePage<EntityOf<State>>> {
    const { states, ...found } = await this.#reader.states(this.#list(organizationId, filter), page, this.#part);
    // Written by the fold of this type, under keys that carry the version of its shape.
    const entities = states.map((state) => entityOf(state as State)).filter((entity) => entity !== null);
    return { ...found, states: entities.filter((entity) => !isDeleted(entity)) };
  }

  /**
   * Ids of the entities of all organizations that have all of these look-ups, by the read model.
   *
   * @throws `Fault` `store_unavailable`, or `not_caught_up` while the lists are being built
   */
  lookedUp(lookUps: Facets): Promise<readonly EntityId[]> {
    const { category } = this.type;
    return this.#reader.ids({ category, organizationId: null, facets: facetsOfFilter(lookUps) });
  }

  /** The entities with all of the facets, each with the revision that its read model reflects. Throws as {@link page}. */
  revisions(organizationId: EntityId, filter: FilterOf<F>): Promise<(readonly [EntityId, StreamRevision])[]> {
    return this.#reader.revisions(this.#list(organizationId, filter));
  }

  /** The revision that the read model of the entity reflects, or null if the organization has none. */
  async revision(organizationId: EntityId, id: EntityId): Promise<StreamRevision | null> {
    const entity = { category: this.type.category, organizationId, id };
    return (await this.#reader.whole(entity, () => Promise.resolve(null)))?.revision ?? null;
  }

  /**
   * The entity as it was at a point of its history; null before its first event and while it was deleted.
   *
   * @param id of an entity that the organization has
   * @throws `Fault` `store_unavailable`; StreamGone; RangeError for more than {@link MAX_PAST_EVENTS} events
   */
  async at(id: EntityId, point: HistoryPoint): Promise<EntityOf<State> | null> {
    const past = await foldUntil(this.store, this.type.projection, id, { point, maxEvents: MAX_PAST_EVENTS });
    if (past === null) throw new RangeError(`more than ${MAX_PAST_EVENTS} events happened until then`);
    const entity = entityOf(past.state);
    return entity === null || isDeleted(entity) ? null : entity;
  }

  /** The state that the frame of an event needs. */
  async #stateBefore({ organizationId, id }: EntityRef, next: StreamRevision): Promise<State> {
    const { projection, hasPlainFrames } = this.type;
    if (hasPlainFrames === true) return projection.fold.initialState;
    const fold = (): Promise<State> => foldedBefore(this.store, projection, id, next);
    return this.eventStreams === undefined ? fold() : this.eventStreams.folds.run(fold, { group: organizationId });
  }

  #list(organizationId: EntityId, filter: FilterOf<F>) {
    const { category, isTenant } = this.type;
    return { category, organizationId: isTenant ? null : organizationId, facets: facetsOfFilter(filter) };
  }

  /** The events of an organization belong to that organization, also if a principal of another one causes them. */
  #within(context: CommandContext, id: EntityId): CommandContext {
    return this.type.isTenant ? { ...context, organizationId: id } : context;
  }
}
