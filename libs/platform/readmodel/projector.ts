import {
  type DomainEvent,
  NO_EVENTS,
  type StreamEvent,
  type StreamRevision,
  streamRevision,
} from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { Fault, StreamGone } from '#libs/kernel/faults.ts';
import { withinMemory } from '#libs/platform/config/index.ts';
import type { EventStore, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { streamName, TipCache } from '#libs/platform/streams/index.ts';

import { type ApplyMoment, OwnApplies } from './own-applies.ts';
import {
  type ProjectedRun,
  type Projection,
  projectRun,
  publicationOfAppended,
  publicationOfStored,
} from './projection.ts';
import { entityKeys, type EntityKeys, type EntityRef, type ReadModelName } from './read-model.keys.ts';
import type { EntityWrite, ReadModel } from './read-model.ts';
import type { Snapshot } from './snapshot.ts';
import { type AnyProjection, foldRun, GAP, lastRevision, runOf, type StoredRun } from './stored-run.ts';
import { organizationOf } from './stream-owner.ts';
import { UnappliedEntities } from './unapplied-entities.ts';

/** Events of one entity that are folded and written at a time. */
const PAGE = withinMemory(500);
const GAP_ATTEMPTS = 5;
const FOLDED_BYTES = withinMemory(48 * 1024 * 1024);

/** Appended events of one entity, with the state before and after them. */
export interface AppendedRun<State, E extends DomainEvent> extends ProjectedRun<State, E> {
  readonly events: readonly [StreamEvent<E>, ...StreamEvent<E>[]];
  /** Subscribers get a head notice instead of frames. Default: false. */
  readonly isPast?: boolean;
}

/**
 * Applies events to the read models: events that this process has appended, events that a feed delivers, and events that
 * one entity lacks. All use the same guarded write, so any number of processes may do so at once.
 */
export class Projector {
  readonly #onGone: ((stream: string, error: StreamGone) => void) | undefined;
  readonly #store: EventStore;
  readonly #readModel: ReadModel;
  readonly #projections: ReadonlyMap<string, AnyProjection>;
  /**
   * The states that were folded last from feeds, by revision key. A cache: if the read model is at another revision, the
   * guard reports a gap or a duplicate, and the stored state is read.
   */
  readonly #folded = new TipCache(FOLDED_BYTES);
  readonly #own = new OwnApplies();
  /** Entities whose events this process has appended and could not apply; reads bring them up to date first. */
  readonly unapplied: UnappliedEntities;

  /** @param onGone called with a stream that lacks the events which a read model needs next */
  constructor(
    store: EventStore,
    readModel: ReadModel,
    projections: readonly AnyProjection[],
    onGone?: (stream: string, error: StreamGone) => void,
  ) {
    this.#onGone = onGone;
    this.#store = store;
    this.#readModel = readModel;
    this.#projections = new Map(projections.map((projection) => [projection.category, projection]));
    this.unapplied = new UnappliedEntities({
      revisions: (keys) => readModel.revisions(keys),
      catchUp: ({ category, organizationId, id }) => this.catchUp(category, organizationId, id),
    });
  }

  /** Memory of the states that were folded last. */
  get foldedBytes(): number {
    return this.#folded.bytes;
  }

  /** For {@link applyStored}. */
  now(): ApplyMoment {
    return this.#own.now();
  }

  /** The read models that this projector writes. */
  get readModels(): readonly ReadModelName[] {
    return [...this.#projections.values()];
  }

  /** A projector like this one, for some of the categories only. */
  only(categories: readonly string[]): Projector {
    const projections = [...this.#projections.values()].filter(({ category }) => categories.includes(category));
    return new Projector(this.#store, this.#readModel, projections, this.#onGone);
  }

  /** Keys of an entity's read model. An unknown category has none in Redis. */
  keysOf({ category, organizationId, id }: EntityRef): EntityKeys {
    return entityKeys(this.#projections.get(category) ?? { category, version: 0 }, organizationId, id);
  }

  /** Prefixes of the streams that have a projection, for a feed's filter. */
  get streamPrefixes(): string[] {
    return [...this.#projections.keys()].map((category) => `${category}-`);
  }

  /**
   * Applies what was just appended and publishes it, and fills the gap before it if there is one. If this fails, the
   * entity is known to be behind until a later call applies it.
   *
   * @param prepared the writes of the run, see {@link writeOfAppended}; made here by default
   */
  async applyAppended<State, E extends DomainEvent>(
    projection: Projection<State, E>,
    run: AppendedRun<State, E>,
    prepared?: EntityWrite,
  ): Promise<void> {
    const { category } = projection;
    const { organizationId, id } = run;
    const { revision } = entityKeys(projection, organizationId, id);
    try {
      const write = prepared ?? writeOfAppended(projection, run);
      const outcome = this.#readModel.apply([write]).then(([first]) => first?.kind);
      const isConfirmed = outcome.then(
        (kind) => kind !== 'gap',
        () => false,
      );
      this.#own.note(revision, lastOf(run), isConfirmed);
      if ((await outcome) === 'gap') {
        await this.catchUp(category, organizationId, id);
        // Already applied: only publishes the frames.
        if (write.publication) await this.#readModel.apply([write]);
      }
      this.unapplied.applied(revision, lastOf(run));
    } catch (error) {
      this.unapplied.add(revision, { category, organizationId, id, revision: lastOf(run) });
      throw error;
    }
  }

  /**
   * Applies events of any streams as a feed delivers them: each event for the first time only after those before it in
   * its stream. Events may be applied already, or be repeated after later ones.
   *
   * @param options.repairLists also writes the list entries of entities that are up to date. While read models are
   *   deleted under a running system, an entity may survive whose list entry did not.
   * @param options.since {@link now} of the caller, after it read the checkpoint it began with: passes over events that
   *   commands of this process have applied since then
   * @throws `Fault` when a store is unavailable (deliver the same events again); `CorruptEventError` (stop here)
   */
  async applyStored(
    events: readonly StoredEvent[],
    { repairLists = false, since }: { readonly repairLists?: boolean; readonly since?: ApplyMoment | undefined } = {},
  ): Promise<void> {
    const runs = await this.#groupByEntity(events);
    const wanted = repairLists ? runs : await this.#unknownOf(await this.#notAppliedHere(runs, since));
    const snapshots = await this.#snapshotsBefore(wanted);
    const folded = wanted.map((run, index) => (run.hasHole === true ? GAP : foldRun(run, snapshots[index] ?? null)));
    const writes = folded.filter((result) => result.kind !== 'gap').map((result) => result.write);
    const outcomes = await this.#readModel.apply(writes);
    const gaps = new Set(
      writes.filter((_, index) => outcomes[index]?.kind === 'gap').map((write) => write.revisionKey),
    );
    for (const [index, run] of wanted.entries()) {
      const result = folded[index];
      if (result !== undefined && result.kind !== 'gap' && !gaps.has(run.keys.revision)) {
        this.#remember(result.write, result.after);
        continue;
      }
      this.#folded.delete(run.keys.revision);
      await this.catchUp(run.projection.category, run.organizationId, run.id);
    }
  }

  #remember({ revisionKey, last, operations }: EntityWrite, state: unknown): void {
    const from = this.#folded.get(revisionKey);
    // No event adds more to a state than to what is written.
    const growth = from && { from, bytes: charactersOf(operations) };
    this.#folded.put(revisionKey, { tip: { state, revision: last } }, growth ?? null);
  }

  async #notAppliedHere(runs: readonly StoredRun[], since: ApplyMoment | undefined): Promise<readonly StoredRun[]> {
    if (since === undefined) return runs;
    const own = await Promise.all(runs.map((run) => this.#own.covers(run.keys.revision, lastRevision(run), since)));
    return runs.filter((_, index) => own[index] !== true);
  }

  async #unknownOf(runs: readonly StoredRun[]): Promise<StoredRun[]> {
    const revisions = await this.#readModel.revisions(runs.map((run) => run.keys.revision));
    return runs.filter((run, index) => lastRevision(run) > (revisions[index] ?? NO_EVENTS));
  }

  /** The states that the runs start from: cached ones, else those of the read model. */
  async #snapshotsBefore(runs: readonly StoredRun[]): Promise<(Snapshot | null)[]> {
    const remembered = runs.map((run) => {
      const snapshot = this.#folded.get(run.keys.revision)?.tip;
      return snapshot !== undefined && snapshot.revision + 1 === run.events[0]?.revision ? snapshot : undefined;
    });
    const missing = runs.filter((_, index) => remembered[index] === undefined);
    const stored = (await this.#readModel.snapshots(missing)).values();
    return remembered.map((snapshot) => snapshot ?? stored.next().value ?? null);
  }

  /**
   * Brings the read model of one entity up to the end of its stream. Does nothing for a stream that does not exist,
   * belongs to another organization, or lacks the events that the read model needs next: an operator deleted these.
   *
   * @returns whether the organization has such an entity
   */
  async catchUp(category: string, organizationId: EntityId, id: EntityId): Promise<boolean> {
    const projection = this.#projections.get(category);
    if (projection === undefined) return false;
    const keys = entityKeys(projection, organizationId, id);
    // Events that are appended meanwhile may be missing from this read.
    const unapplied = this.unapplied.get(keys.revision)?.revision;
    for (let attempt = 0; attempt < GAP_ATTEMPTS; attempt++) {
      const [snapshot] = await this.#readModel.snapshots([{ projection, keys }]);
      const outcome = await this.#applyTail(projection, organizationId, id, keys, snapshot ?? null).catch(
        (error: unknown) => {
          if (!(error instanceof StreamGone)) throw error;
          this.#onGone?.(streamName(category, id), error);
          return snapshot ? 'there' : 'missing';
        },
      );
      if (outcome === 'gap') continue;
      if (unapplied !== undefined) this.unapplied.applied(keys.revision, unapplied);
      return outcome === 'there';
    }
    throw new Fault('not_caught_up', 'The read model could not be brought up to date', { retryAfterSeconds: 1 });
  }

  /** @returns `gap` if the read model was deleted or set back meanwhile */
  async #applyTail(
    projection: AnyProjection,
    organizationId: EntityId,
    id: EntityId,
    keys: EntityKeys,
    from: Snapshot | null,
  ): Promise<'there' | 'missing' | 'gap'> {
    let snapshot = from;
    let page: StoredEvent[] = [];
    const flush = async (): Promise<boolean> => {
      if (page.length === 0) return true;
      const folded = foldRun({ projection, organizationId, id, keys, events: page }, snapshot);
      page = [];
      if (folded.kind !== 'new') return folded.kind === 'known';
      const [outcome] = await this.#readModel.apply([folded.write]);
      snapshot = { revision: folded.write.last, state: folded.after };
      return outcome?.kind !== 'gap';
    };
    const next = streamRevision((snapshot?.revision ?? NO_EVENTS) + 1);
    let isOwned = snapshot !== null;
    for await (const event of this.#store.readStream(streamName(projection.category, id), { from: next })) {
      const owner = organizationOf(event);
      // A stream belongs to one organization: a request of another one must not read all of it.
      const isFirst = page.length === 0 || !isOwned;
      if (isFirst && owner !== null && owner !== organizationId) return 'missing';
      isOwned ||= owner !== null;
      page.push(event);
      if (page.length < PAGE) continue;
      // Foreign events change nothing: the first and the last revision say enough.
      if (!isOwned) page.splice(1, PAGE - 2);
      else if (!(await flush())) return 'gap';
    }
    if (!isOwned) return 'missing';
    if (!(await flush())) return 'gap';
    return snapshot === null ? 'missing' : 'there';
  }

  async #groupByEntity(events: readonly StoredEvent[]): Promise<StoredRun[]> {
    const runs = new Map<string, StoredEvent[]>();
    for (const event of events) {
      const run = runs.get(event.stream);
      if (run === undefined) runs.set(event.stream, [event]);
      // A repeated event would be folded twice.
      else if (event.revision > (run.at(-1)?.revision ?? NO_EVENTS)) run.push(event);
    }
    const found = await Promise.all(
      [...runs].map(([stream, run]) => runOf(this.#store, this.#projections, stream, run)),
    );
    return found.filter((run) => run !== null);
  }
}

/** The writes and the frames of a run. Needs no store, so they can be made while the run is being appended. */
export function writeOfAppended<State, E extends DomainEvent>(
  projection: Projection<State, E>,
  run: AppendedRun<State, E>,
): EntityWrite {
  const keys = entityKeys(projection, run.organizationId, run.id);
  const last = lastOf(run);
  return {
    revisionKey: keys.revision,
    first: run.events[0].revision,
    last,
    ...projectRun(projection, run, keys),
    publication:
      run.isPast === true ? publicationOfStored(projection, run, last) : publicationOfAppended(projection, run, last),
  };
}

function lastOf<State, E extends DomainEvent>({ events }: AppendedRun<State, E>): StreamRevision {
  return streamRevision(events[0].revision + events.length - 1);
}

function charactersOf(operations: EntityWrite['operations']): number {
  let sum = 0;
  for (const { args } of operations) for (const arg of args) if (typeof arg !== 'number') sum += arg.length;
  return sum;
}
