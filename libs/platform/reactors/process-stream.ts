import type { LRUCache } from 'lru-cache';

import type { Timestamp } from '#libs/kernel/clock.ts';
import {
  type DomainEvent,
  type EventMetadata,
  NO_EVENTS,
  type StreamEvent,
  type StreamRevision,
  streamRevision,
} from '#libs/kernel/event.ts';
import { type EntityId, eventIdOf } from '#libs/kernel/ids.ts';
import { appendExactly, encodeMetadata, type EventStore, type StoreClock } from '#libs/platform/eventstore/index.ts';

import type { ProcessStreams } from './reactor.ts';

/** A process at one revision of its stream. */
export interface ProcessTip<State> {
  readonly state: State;
  readonly revision: StreamRevision;
  /** When its events were stored, by revision, on the event store's clock. */
  readonly createdMs: ReadonlyMap<StreamRevision, number>;
  readonly lastAt: Timestamp;
  readonly organizationId: EntityId | null;
  /** Revision of its newest event of each type. */
  readonly newest: ReadonlyMap<string, StreamRevision>;
  /** The commands and steps that have left events in it. */
  readonly commandIds: ReadonlySet<EntityId>;
}

const NOTHING = { revision: NO_EVENTS, organizationId: null, lastAt: '' };
const EMPTY = { ...NOTHING, createdMs: new Map(), newest: new Map(), commandIds: new Set<EntityId>() } as const;

interface Stores {
  readonly store: EventStore;
  readonly clock: StoreClock;
}

/** Processes of one reactor as they were last read, by their streams. */
export type ProcessTips = LRUCache<string, ProcessTip<unknown>>;

/** Reads and appends the stream of one process. Nothing comes from a read model. */
export class ProcessStream<State, E extends DomainEvent> {
  readonly name: string;
  readonly #streams: ProcessStreams<State, E>;
  readonly #stores: Stores;
  readonly #tips: ProcessTips;

  constructor(streams: ProcessStreams<State, E>, stores: Stores, id: EntityId, tips: ProcessTips) {
    this.name = `${streams.category}-${id}`;
    this.#streams = streams;
    this.#stores = stores;
    this.#tips = tips;
  }

  /** Folds the events that were appended since the last call for this process. @throws Fault; CorruptEventError */
  async load(): Promise<ProcessTip<State>> {
    const { codec, fold } = this.#streams;
    // A reactor whose effects are all commands has no streams of its own.
    if (codec.types.size === 0) return { ...EMPTY, state: fold.initialState };
    // Written by this reactor, which has one fold.
    const known = this.#tips.get(this.name) as ProcessTip<State> | undefined;
    const newest = new Map(known?.newest);
    const commandIds = new Set(known?.commandIds);
    const createdMs = new Map(known?.createdMs);
    let { state, revision, organizationId, lastAt } = known ?? { ...NOTHING, state: fold.initialState };
    const from = streamRevision(revision + 1);
    for await (const stored of this.#stores.store.readStream(this.name, { from })) {
      const event = codec.decode(stored);
      revision = stored.revision;
      createdMs.set(revision, stored.createdMs);
      newest.set(stored.type, revision);
      if (event === null) continue;
      state = fold.evolve(state, event);
      commandIds.add(event.metadata.commandId);
      organizationId ??= event.metadata.organizationId;
      if (event.metadata.at > lastAt) lastAt = event.metadata.at;
    }
    const tip = { state, revision, createdMs, lastAt, organizationId, newest, commandIds };
    if (revision !== NO_EVENTS) this.#tips.set(this.name, tip);
    return tip;
  }

  /**
   * Appends at exactly the revision of `tip`: see `appendExactly`.
   *
   * @param source what the ids of the events are derived from
   * @returns the events, or null on a conflict
   * @throws Fault; TypeError for events that do not fit their schema
   */
  async append(
    tip: Pick<ProcessTip<State>, 'revision' | 'lastAt'>,
    events: readonly E[],
    { source, ...context }: { readonly source: EntityId } & EventMetadata,
  ): Promise<readonly StreamEvent<E>[] | null> {
    const at = context.at < tip.lastAt ? tip.lastAt : context.at;
    const metadata = encodeMetadata({ ...context, at });
    const appended = events.map((event, index) => ({
      ...event,
      data: this.#streams.codec.encode(event),
      id: eventIdOf(source, index),
      revision: streamRevision(tip.revision + 1 + index),
      metadata,
    }));
    if (await appendExactly(this.#stores, this.name, tip.revision, appended)) return appended;
    // The next load reads the whole stream.
    this.#tips.delete(this.name);
    return null;
  }
}
