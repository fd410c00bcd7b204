import { type ChannelSequence, type DomainEvent, type StreamRevision, streamRevision } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import type { EventFrame, FramesOptions, FrameSource } from '#libs/platform/live/index.ts';
import {
  type EntityRef,
  frameOfStored,
  headOf,
  type HistoryReader,
  organizationOf,
  type Projection,
  refuseDeleted,
} from '#libs/platform/readmodel/index.ts';
import { streamName } from '#libs/platform/streams/index.ts';

const MAX_PAGE_FRAMES = 500;
const MAX_PAGE_BYTES = 1024 * 1024;
/** Size of a frame before any of the channel was read. */
const EXPECTED_FRAME_BYTES = 1024;

/** How a channel's events become frames, and where a fold of them can start. */
export interface ChannelEvents<State, E extends DomainEvent> {
  /** The projection that publishes the live frames. */
  readonly projection: Projection<State, E>;
  /** The state before the block of events that contains `revision`. */
  stateBefore(channel: EntityRef, revision: StreamRevision): Promise<State>;
}

/**
 * The events of a channel as frames, from the log. The first page reads the history, one block of events, and the events
 * of the interactions that were incomplete before that block.
 *
 * Guarantees: frames are contiguous, ascending, and the same bytes as those that are published live. Throws
 * `store_unavailable` faults, and `StreamGone` where the next event was deleted.
 * Omits: the read model, which may be behind.
 */
export class ChannelLog<State = unknown, E extends DomainEvent = DomainEvent> implements FrameSource {
  readonly #store: EventStore;
  readonly #history: HistoryReader;
  readonly #events: ChannelEvents<State, E>;

  constructor(store: EventStore, history: HistoryReader, events: ChannelEvents<State, E>) {
    this.#store = store;
    this.#history = history;
    this.#events = events;
  }

  /** Sequence of the newest event; null if the organization has no such channel. */
  head(organizationId: EntityId, channelId: EntityId): Promise<ChannelSequence | null> {
    return headOf(this.#store, { category: this.#events.projection.category, organizationId, id: channelId });
  }

  /** @throws StreamGone if the event after `after` was deleted */
  refuseDeleted(channelId: EntityId, after: number, head: number): Promise<void> {
    return refuseDeleted(this.#store, { category: this.#events.projection.category, id: channelId }, after, head);
  }

  /**
   * Pages from `after + 1` up to the end at the time of the read, each of at most about 500 frames or 1 MiB. Holds
   * nothing open between pages, so a slow reader costs nothing.
   *
   * @param after a sequence of the channel, or 0
   */
  async *framesAfter(
    organizationId: EntityId,
    channelId: EntityId,
    after: number,
    { signal, pageBytes = () => MAX_PAGE_BYTES }: FramesOptions = {},
  ): AsyncIterable<readonly EventFrame[]> {
    const channel = { category: this.#events.projection.category, organizationId, id: channelId };
    const stream = streamName(channel.category, channelId);
    let state: State | undefined;
    let expectedFrameBytes = EXPECTED_FRAME_BYTES;
    for (let from = streamRevision(after); ;) {
      const frames: EventFrame[] = [];
      const maxBytes = pageBytes();
      let bytes = 0;
      let last = from;
      // The page holds about as many: more events would be sent and decoded in vain.
      const limit = Math.min(MAX_PAGE_FRAMES, Math.ceil(maxBytes / expectedFrameBytes));
      for await (const stored of this.#store.readStream(stream, { from, limit, ...(signal && { signal }) })) {
        if ((organizationOf(stored) ?? organizationId) !== organizationId) break;
        // Only now: at the end of the log, a page costs no state.
        const [frame, next] = frameOfStored(
          this.#events.projection,
          channel,
          state ?? (await this.#stateBefore(channel, from)),
          stored,
        );
        frames.push(frame);
        last = stored.revision;
        state = next;
        // Characters: an approximation.
        bytes += frame.json.length;
        if (bytes >= maxBytes) break;
      }
      if (frames.length > 0) yield frames;
      if (bytes < maxBytes && frames.length < limit) return;
      expectedFrameBytes = bytes / frames.length;
      from = streamRevision(last + 1);
    }
  }

  async #stateBefore(channel: EntityRef, next: StreamRevision): Promise<State> {
    const { projection, stateBefore } = this.#events;
    const { fold, codec } = projection;
    if (next === 0) return fold.initialState;
    const state = await this.#history.at(channel, { sequence: next }, async (revision) => {
      if (revision + 1 !== next) return null;
      let folded: State = await stateBefore(channel, revision);
      // Of a truncated block, what is left: frames may lack what deleted events had set.
      for (const stored of await this.#history.blockUpTo(channel, revision, { needs: 'nothing' })) {
        const event = codec.types.has(stored.type) ? codec.decode(stored) : null;
        if (event !== null) folded = fold.evolve(folded, event);
      }
      return { folded };
    });
    // The read models were deleted: the history is not rebuilt yet.
    if (state === null) throw new Fault('not_caught_up', 'The read models are being built', { retryAfterSeconds: 2 });
    return state.folded;
  }
}
