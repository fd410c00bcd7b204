import type { DomainEvent, EventMetadata, StreamEvent, StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { EventStore, StoreClock, StoredEvent } from '#libs/platform/eventstore/index.ts';
import {
  appendExactly,
  emptyTip,
  eventsToAppend,
  foldTail,
  type Growth,
  latestTime,
  parseStreamName,
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
  /** When this was the end of the stream, on the clock of `performance`. */
  readonly seenAtMs: number;
}

/** A process at one revision of its stream. */
export interface ProcessTip<State> extends Tip<State>, Notes {}

/** What an append has left in the stream. */
export interface Recorded<State, E extends DomainEvent> {
  readonly events: readonly StreamEvent<E>[];
  /** The process after it; null where another worker may have appended the same step before, with other contents. */
  readonly tip: ProcessTip<State> | null;
}

/** Memory of the notes of one event. */
const NOTE_BYTES = 256;
const NO_NOTES: Notes = {
  createdMs: new Map(),
  organizationId: null,
  newest: new Map(),
  commandIds: new Set(),
  seenAtMs: -Infinity,
};

/** Reads and appends the stream of one process. Nothing comes from a read model. */
export class ProcessStream<State, E extends DomainEvent> {
  readonly name: string;
  readonly #type: StreamType<State, E>;
  readonly #stores: { readonly store: EventStore; readonly clock: StoreClock };
  readonly #id: EntityId;
  readonly #tips: TipCache;
  readonly #key: string;

  constructor(
    type: StreamType<State, E>,
    stores: { readonly store: EventStore; readonly clock: StoreClock },
    { id, tips }: { readonly id: EntityId; readonly tips: TipCache },
  ) {
    this.name = streamName(type.category, id);
    this.#type = type;
    this.#stores = stores;
    this.#id = id;
    this.#tips = tips;
    this.#key = `${numberOf(type)} ${this.name}`;
  }

  /** The end of the stream as this worker has seen it last. */
  get known(): ProcessTip<State> | null {
    // Put here, with the fold of this type.
    return (this.#tips.get(this.#key)?.tip as ProcessTip<State> | undefined) ?? null;
  }

  /** Folds the events that were appended since the last call for this process. @throws Fault; CorruptEventError */
  async load(): Promise<ProcessTip<State>> {
    // A reactor whose effects are all commands has no streams of its own.
    if (this.#type.codec.types.size === 0) return { ...emptyTip(this.#type), ...NO_NOTES };
    const kept = this.#tips.get(this.#key);
    const known = this.known ?? { ...emptyTip(this.#type), ...NO_NOTES };
    const notes = notesAfter(known);
    let bytes = 0;
    const folded = await foldTail(this.#stores.store, this.#type, this.#id, known, {
      onEvent: (stored, event) => {
        bytes += JSON.stringify(stored.data)?.length ?? 0;
        note(notes, stored, event?.metadata);
      },
    });
    return this.#keep({ ...folded, ...notes }, kept && { from: kept, bytes });
  }

  #keep(tip: ProcessTip<State>, growth: Growth | undefined): ProcessTip<State> {
    const otherBytes = NOTE_BYTES * tip.createdMs.size;
    if (tip.createdMs.size > 0) this.#tips.put(this.#key, { tip, otherBytes }, growth ?? null);
    return tip;
  }

  /**
   * Appends at exactly the revision of `tip`: see `appendExactly`.
   *
   * @param source what the ids of the events are derived from
   * @returns null on a conflict
   * @throws Fault; TypeError for events that do not fit their schema
   */
  async append(
    tip: ProcessTip<State>,
    events: readonly E[],
    { source, ...context }: { readonly source: EntityId } & EventMetadata,
  ): Promise<Recorded<State, E> | null> {
    const metadata = { ...context, at: latestTime(tip.at, context.at) };
    const appended = eventsToAppend(this.#type.codec, events, { after: tip.revision, source, metadata });
    const result = await appendExactly(this.#stores, this.name, tip.revision, appended);
    if (result === null) {
      // The next load reads the whole stream.
      this.#tips.delete(this.#key);
      return null;
    }
    const { createdMs } = result;
    return { events: appended, tip: createdMs === undefined ? null : this.#after(tip, appended, createdMs) };
  }

  #after(tip: ProcessTip<State>, events: readonly StreamEvent<E>[], createdMs: number): ProcessTip<State> {
    const notes = notesAfter(tip);
    let { state, revision, at } = tip;
    let bytes = 0;
    for (const event of events) {
      state = this.#type.fold.evolve(state, event);
      [revision, at] = [event.revision, event.metadata.at];
      bytes += JSON.stringify(event.data).length;
      note(notes, { type: event.type, revision, createdMs }, event.metadata);
    }
    const kept = this.#tips.get(this.#key);
    const growth = kept?.tip === tip ? { from: kept, bytes } : undefined;
    return this.#keep({ state, revision, at, ...notes }, growth);
  }
}

/** The state of the stream of `stored` at that event or later; reactors that have read or appended it leave its tip. */
export async function stateAfter<State>(
  stored: StoredEvent,
  type: StreamType<State, DomainEvent>,
  stores: { readonly store: EventStore; readonly clock: StoreClock },
  tips: TipCache,
): Promise<State> {
  const stream = new ProcessStream(type, stores, { id: parseStreamName(stored.stream).id, tips });
  const { known } = stream;
  const tip = known !== null && known.revision >= stored.revision ? known : await stream.load();
  return tip.state;
}

const numbers = new WeakMap<object, number>();
let lastNumber = 0;

/** Types with other folds may have the same streams. */
function numberOf(type: object): number {
  const number = numbers.get(type) ?? ++lastNumber;
  numbers.set(type, number);
  return number;
}

type MutableNotes = ReturnType<typeof notesAfter>;

function notesAfter({ createdMs, organizationId, newest, commandIds }: Notes) {
  return {
    createdMs: new Map(createdMs),
    organizationId,
    newest: new Map(newest),
    commandIds: new Set(commandIds),
    seenAtMs: performance.now(),
  };
}

function note(
  notes: MutableNotes,
  { type, revision, createdMs }: Pick<StoredEvent, 'type' | 'revision' | 'createdMs'>,
  metadata: EventMetadata | undefined,
): void {
  notes.createdMs.set(revision, createdMs);
  notes.newest.set(type, revision);
  if (metadata === undefined) return;
  notes.commandIds.add(metadata.commandId);
  notes.organizationId ??= metadata.organizationId;
}
