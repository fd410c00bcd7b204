import { type DomainEvent, streamRevision, type StreamRevision } from '#libs/kernel/event.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import type { EventFrame } from '#libs/platform/live/index.ts';
import { type EntityRef, frameOfStored, type Projection } from '#libs/platform/readmodel/index.ts';
import { streamName } from '#libs/platform/streams/index.ts';

const PAGE_EVENTS = 500;
const PAGE_CHARACTERS = 1024 * 1024;

export interface LoggedType<State, E extends DomainEvent> {
  readonly projection: Projection<State, E>;
  readonly hasPlainFrames?: boolean;
}

export interface FramePage {
  readonly frames: readonly EventFrame[];
  /** The stream had no more events. */
  readonly isLast: boolean;
}

/**
 * The events of one entity as frames, from the log, page by page. A frame may need the state before its event, so the first
 * page folds the stream from its start: for entities with short streams, or with plain frames.
 *
 * Guarantees: contiguous and ascending; the bytes that are published live. Holds nothing open between pages.
 */
export class EntityLog<State, E extends DomainEvent> {
  readonly #store: Pick<EventStore, 'readStream'>;
  readonly #projection: Projection<State, E>;
  readonly #entity: Pick<EntityRef, 'organizationId' | 'id'>;
  readonly #hasPlainFrames: boolean;
  #state: State;
  /** Of the next event to read; the state is that before it. */
  #next: StreamRevision = streamRevision(0);

  /** @param type `hasPlainFrames`: the first page is read from its position */
  constructor(
    store: Pick<EventStore, 'readStream'>,
    { projection, hasPlainFrames = false }: LoggedType<State, E>,
    entity: Pick<EntityRef, 'organizationId' | 'id'>,
  ) {
    this.#store = store;
    this.#projection = projection;
    this.#hasPlainFrames = hasPlainFrames;
    this.#entity = entity;
    this.#state = projection.fold.initialState;
  }

  /**
   * The next frames after a sequence.
   *
   * @param after not before that of an earlier call
   * @throws `Fault` `store_unavailable`; StreamGone if the event after that sequence was deleted; the reason of the signal
   */
  async page(after: number, signal: AbortSignal): Promise<FramePage> {
    const stream = streamName(this.#projection.category, this.#entity.id);
    const frames: EventFrame[] = [];
    let [state, events, characters] = [this.#state, 0, 0];
    const from = this.#hasPlainFrames ? streamRevision(after) : this.#next;
    let next: StreamRevision = from;
    const needs = streamRevision(after);
    for await (const stored of this.#store.readStream(stream, { from, needs, limit: PAGE_EVENTS, signal })) {
      const [frame, folded] = frameOfStored(this.#projection, this.#entity, state, stored);
      state = folded;
      next = streamRevision(stored.revision + 1);
      events += 1;
      if (frame.sequence <= after) continue;
      frames.push(frame);
      characters += frame.json.length;
      if (characters >= PAGE_CHARACTERS) break;
    }
    // Only now: a page that could not be read completely is read again.
    this.#state = state;
    this.#next = next;
    return { frames, isLast: events < PAGE_EVENTS && characters < PAGE_CHARACTERS };
  }
}
