import type { DomainEvent, EventMetadata, StreamEvent, StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { EventStore, StoreClock } from '#libs/platform/eventstore/index.ts';
import {
  appendExactly,
  emptyTip,
  eventsToAppend,
  foldTail,
  latestTime,
  streamName,
  type StreamType,
  type Tip,
  type TipCache,
} from '#libs/platform/streams/index.ts';

/** Facts about the stream of a process that its fold does not keep. */
interface Notes {
  /** When its events were stored, by revision, on the event store's clock. */
  readonly createdMs: ReadonlyMap<StreamRevision, number>;
  readonly organizationId: EntityId | null;
  /** Revision of its newest event of each type. */
  readonly newest: ReadonlyMap<string, StreamRevision>;
  /** The commands and steps that have left events in it. */
  readonly commandIds: ReadonlySet<EntityId>;
}

/** A process at one revision of its stream. */
export interface ProcessTip<State> extends Tip<State>, Notes {}

/** Memory of the notes of one event. */
const NOTE_BYTES = 256;
const NO_NOTES: Notes = { createdMs: new Map(), organizationId: null, newest: new Map(), commandIds: new Set() };

/** Reads and appends the stream of one process. Nothing comes from a read model. */
export class ProcessStream<State, E extends DomainEvent> {
  readonly name: string;
  readonly #type: StreamType<State, E>;
  readonly #stores: { readonly store: EventStore; readonly clock: StoreClock };
  readonly #id: EntityId;
  readonly #tips: TipCache;
  readonly #key: string;

  /** @param reactor name of the reactor, whose tips these are: reactors fold the same streams in different ways */
  constructor(
    type: StreamType<State, E>,
    stores: { readonly store: EventStore; readonly clock: StoreClock },
    { id, reactor, tips }: { readonly id: EntityId; readonly reactor: string; readonly tips: TipCache },
  ) {
    this.name = streamName(type.category, id);
    this.#type = type;
    this.#stores = stores;
    this.#id = id;
    this.#tips = tips;
    this.#key = `${reactor} ${this.name}`;
  }

  /** Folds the events that were appended since the last call for this process. @throws Fault; CorruptEventError */
  async load(): Promise<ProcessTip<State>> {
    // A reactor whose effects are all commands has no streams of its own.
    if (this.#type.codec.types.size === 0) return { ...emptyTip(this.#type), ...NO_NOTES };
    const kept = this.#tips.get(this.#key);
    // Put here, by a reactor, which has one fold.
    const known = kept?.tip as ProcessTip<State> | undefined;
    const newest = new Map(known?.newest);
    const commandIds = new Set(known?.commandIds);
    const createdMs = new Map(known?.createdMs);
    let [organizationId, bytes] = [known?.organizationId ?? null, 0];
    const folded = await foldTail(this.#stores.store, this.#type, this.#id, known ?? emptyTip(this.#type), {
      onEvent: (stored, event) => {
        bytes += JSON.stringify(stored.data)?.length ?? 0;
        createdMs.set(stored.revision, stored.createdMs);
        newest.set(stored.type, stored.revision);
        if (event === null) return;
        commandIds.add(event.metadata.commandId);
        organizationId ??= event.metadata.organizationId;
      },
    });
    const tip = { ...folded, createdMs, organizationId, newest, commandIds };
    const otherBytes = NOTE_BYTES * createdMs.size;
    if (createdMs.size > 0) this.#tips.put(this.#key, { tip, otherBytes }, kept ? { from: kept, bytes } : null);
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
    tip: Pick<ProcessTip<State>, 'revision' | 'at'>,
    events: readonly E[],
    { source, ...context }: { readonly source: EntityId } & EventMetadata,
  ): Promise<readonly StreamEvent<E>[] | null> {
    const metadata = { ...context, at: latestTime(tip.at, context.at) };
    const appended = eventsToAppend(this.#type.codec, events, { after: tip.revision, source, metadata });
    if (await appendExactly(this.#stores, this.name, tip.revision, appended)) return appended;
    // The next load reads the whole stream.
    this.#tips.delete(this.#key);
    return null;
  }
}
