import { type ChannelSequence, type DomainEvent, type StreamRevision, streamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { EventStore, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { type EventFrame, type FramesOptions, type FrameSource, withoutData } from '#libs/platform/live/index.ts';
import { emptyTip, foldTail, streamName } from '#libs/platform/streams/index.ts';

import { frameOfStored, type Projection } from './projection.ts';
import type { EntityRef } from './read-model.keys.ts';
import { headOf, organizationOf, refuseDeleted } from './stream-owner.ts';

const MAX_PAGE_FRAMES = 500;
const MAX_PAGE_BYTES = 1024 * 1024;
/** Size of a frame before any of the stream was read. */
const EXPECTED_FRAME_BYTES = 1024;

/** The state of a stream before the event of a revision, which may not exist yet. */
export type StateBefore<State> = (of: EntityRef, next: StreamRevision, signal?: AbortSignal) => Promise<State>;

/** Of a stream, whether the data of an event were erased by a later one: its frame has null in their place. */
type ErasedEvents = (of: EntityRef) => Promise<(event: StoredEvent) => boolean>;

/**
 * The events of the streams of one category as frames, from the log.
 *
 * Guarantees: frames are contiguous, ascending, and the same bytes as those that are published live, but for erased data.
 * Throws `store_unavailable` faults, and `StreamGone` where the next event was deleted.
 * Omits: the read model, which may be behind, but for what was erased.
 */
export class StreamFrames<State = unknown, E extends DomainEvent = DomainEvent> implements FrameSource {
  readonly #store: Pick<EventStore, 'readStream'>;
  readonly #projection: Projection<State, E>;
  readonly #stateBefore: StateBefore<State>;
  readonly #erased: ErasedEvents | undefined;

  /**
   * @param projection publishes the live frames
   * @param stateBefore called for the first event of a read, unless it is the first one of its stream
   */
  constructor(
    store: Pick<EventStore, 'readStream'>,
    projection: Projection<State, E>,
    stateBefore: StateBefore<State>,
    erased?: ErasedEvents,
  ) {
    this.#store = store;
    this.#projection = projection;
    this.#stateBefore = stateBefore;
    this.#erased = erased;
  }

  get category(): string {
    return this.#projection.category;
  }

  head(organizationId: EntityId, id: EntityId): Promise<ChannelSequence | null> {
    return headOf(this.#store, { category: this.category, organizationId, id });
  }

  refuseDeleted(id: EntityId, after: number, head: number): Promise<void> {
    return refuseDeleted(this.#store, { category: this.category, id }, after, head);
  }

  /**
   * Pages from `after + 1` up to the end at the time of the read, each of at most about 500 frames or 1 MiB. Holds
   * nothing open between pages, so a slow reader costs nothing.
   */
  async *framesAfter(
    organizationId: EntityId,
    id: EntityId,
    after: number,
    { signal, pageBytes = () => MAX_PAGE_BYTES }: FramesOptions = {},
  ): AsyncIterable<readonly EventFrame[]> {
    const entity = { category: this.category, organizationId, id };
    const stream = streamName(this.category, id);
    let state = after === 0 ? this.#projection.fold.initialState : undefined;
    let expectedFrameBytes = EXPECTED_FRAME_BYTES;
    for (let from = streamRevision(after); ;) {
      const read: StoredEvent[] = [];
      const frames: EventFrame[] = [];
      const maxBytes = pageBytes();
      let bytes = 0;
      let last = from;
      // The page holds about as many: more events would be sent and decoded in vain.
      const limit = Math.min(MAX_PAGE_FRAMES, Math.ceil(maxBytes / expectedFrameBytes));
      for await (const stored of this.#store.readStream(stream, { from, limit, ...(signal && { signal }) })) {
        if ((organizationOf(stored) ?? organizationId) !== organizationId) break;
        // Only now: at the end of the log, a page costs no state.
        if (state === undefined) state = await this.#stateBefore(entity, from, signal);
        const [frame, next] = frameOfStored(this.#projection, entity, state, stored);
        read.push(stored);
        frames.push(frame);
        last = stored.revision;
        state = next;
        // Characters: an approximation.
        bytes += frame.json.length;
        if (bytes >= maxBytes) break;
      }
      if (frames.length > 0) yield await this.#withoutErased(entity, frames, read);
      if (bytes < maxBytes && frames.length < limit) return;
      expectedFrameBytes = bytes / frames.length;
      from = streamRevision(last + 1);
    }
  }

  /** Asked when the page was read, so that it knows every deletion before that, and an empty page asks nothing. */
  async #withoutErased(
    entity: EntityRef,
    frames: readonly EventFrame[],
    read: readonly StoredEvent[],
  ): Promise<readonly EventFrame[]> {
    const isErased = await this.#erased?.(entity);
    if (isErased === undefined) return frames;
    return frames.map((frame, index) => (isErased(read[index]!) ? { ...frame, json: withoutData(frame.json) } : frame));
  }
}

/** Folds a stream from its start; for short streams. Of a truncated one, frames may lack what deleted events had set. */
export async function foldedBefore<State, E extends DomainEvent>(
  store: Pick<EventStore, 'readStream'>,
  projection: Projection<State, E>,
  id: EntityId,
  next: StreamRevision,
): Promise<State> {
  const until = ({ revision }: { readonly revision: StreamRevision }) => revision >= next;
  const options = { limit: next, needs: 'nothing', until } as const;
  return (await foldTail(store, projection, id, emptyTip(projection), options)).state;
}
