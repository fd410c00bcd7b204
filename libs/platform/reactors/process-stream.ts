import type { Timestamp } from '#libs/kernel/clock.ts';
import type { DomainEvent, EventMetadata, StreamEvent, StreamRevision } from '#libs/kernel/event.ts';
import { NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';
import { eventIdOf } from '#libs/kernel/ids.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { appendExactly, encodeMetadata } from '#libs/platform/eventstore/index.ts';
import type { EventStore, StoreClock } from '#libs/platform/eventstore/index.ts';

import type { ProcessStreams } from './reactor.ts';

/** A process at one revision of its stream. */
export interface ProcessTip<State> {
  readonly state: State;
  readonly revision: StreamRevision;
  /** When its first event was stored; null while it has none. */
  readonly startedAtMs: number | null;
  readonly lastAt: Timestamp;
  readonly organizationId: EntityId | null;
  /** Revision of its newest event of each type. */
  readonly newest: ReadonlyMap<string, StreamRevision>;
  /** The commands and steps that have left events in it. */
  readonly commandIds: ReadonlySet<EntityId>;
}

interface Stores {
  readonly store: EventStore;
  readonly clock: StoreClock;
}

/** Reads and appends the stream of one process. Nothing is cached, and nothing comes from a read model. */
export class ProcessStream<State, E extends DomainEvent> {
  readonly name: string;
  readonly #streams: ProcessStreams<State, E>;
  readonly #stores: Stores;

  constructor(streams: ProcessStreams<State, E>, stores: Stores, id: EntityId) {
    this.name = `${streams.category}-${id}`;
    this.#streams = streams;
    this.#stores = stores;
  }

  /** Folds the whole stream: it is short. @throws Fault; CorruptEventError */
  async load(): Promise<ProcessTip<State>> {
    const { codec, fold } = this.#streams;
    const newest = new Map<string, StreamRevision>();
    const commandIds = new Set<EntityId>();
    let { initialState: state } = fold;
    let revision = NO_EVENTS;
    let startedAtMs: number | null = null;
    let organizationId: EntityId | null = null;
    let lastAt = '';
    for await (const stored of this.#stores.store.readStream(this.name)) {
      const event = codec.decode(stored);
      revision = stored.revision;
      startedAtMs ??= stored.createdMs;
      newest.set(stored.type, revision);
      if (event === null) continue;
      state = fold.evolve(state, event);
      commandIds.add(event.metadata.commandId);
      organizationId ??= event.metadata.organizationId;
      if (event.metadata.at > lastAt) lastAt = event.metadata.at;
    }
    return { state, revision, startedAtMs, lastAt, organizationId, newest, commandIds };
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
    return (await appendExactly(this.#stores, this.name, tip.revision, appended)) ? appended : null;
  }
}
