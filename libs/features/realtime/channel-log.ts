import { type DomainEvent, type StreamRevision } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import {
  type EntityRef,
  type ErasedEvents,
  type HistoryReader,
  type Projection,
  StreamFrames,
} from '#libs/platform/readmodel/index.ts';

/** How a channel's events become frames, and where a fold of them can start. */
export interface ChannelEvents<State, E extends DomainEvent> {
  /** The projection that publishes the live frames. */
  readonly projection: Projection<State, E>;
  /** The state before the block of events that contains `revision`. */
  stateBefore(channel: EntityRef, revision: StreamRevision): Promise<State>;
  /** Default: none. */
  readonly erased?: ErasedEvents;
}

/**
 * The frames of channels from the log. A first page reads the history, one block of events, and the events of the interactions that
 * were incomplete before that block.
 */
export function channelLog<State, E extends DomainEvent>(
  store: EventStore,
  history: HistoryReader,
  { projection, stateBefore, erased }: ChannelEvents<State, E>,
): StreamFrames<State, E> {
  const { fold, codec } = projection;
  const stateAt = async (channel: EntityRef, next: StreamRevision): Promise<State> => {
    const state = await history.at(channel, { sequence: next }, async (revision) => {
      if (revision + 1 !== next) return null;
      let folded: State = await stateBefore(channel, revision);
      // Of a truncated block, what is left: frames may lack what deleted events had set.
      for (const stored of await history.blockUpTo(channel, revision, { needs: 'nothing' })) {
        const event = codec.types.has(stored.type) ? codec.decode(stored) : null;
        if (event !== null) folded = fold.evolve(folded, event);
      }
      return { folded };
    });
    // The read models were deleted: the history is not rebuilt yet.
    if (state === null) throw new Fault('not_caught_up', 'The read models are being built', { retryAfterSeconds: 2 });
    return state.folded;
  };
  return new StreamFrames(store, projection, stateAt, erased);
}
