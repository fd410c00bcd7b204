/* Channels as they were at a sequence: from their history in the read models, and one block of events of the log. */
import type { StreamRevision } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import type { ReadStreamOptions } from '#libs/platform/eventstore/index.ts';
import { type EntityRef, type HistoryReader, type Projection, StreamFrames } from '#libs/platform/readmodel/index.ts';
import type { Core } from '#libs/platform/runtime/index.ts';

import { channelEntity } from './channel/channel.read.ts';
import type { ChannelState } from './channel/channel.ts';
import type { ChannelStream } from './interaction/interaction.ts';
import { erasedEvents, openBefore } from './interaction/reads/past.ts';
import { channelFrames, type ChannelStreamEvent } from './stream.ts';

/** The channel after the event of a revision. */
export async function channelAt(
  history: HistoryReader,
  stream: EntityRef,
  revision: StreamRevision,
): Promise<ChannelState> {
  const before = await channelBefore(history, stream, revision);
  return foldBlock(history, { type: channelEntity.projection, stream, revision, before });
}

/**
 * The frames of channels from the log. A first page reads the history, one block of events, and the events of the
 * interactions that were incomplete before that block.
 */
export function channelLog(
  core: Pick<Core, 'collections' | 'history' | 'reader' | 'store'>,
): StreamFrames<ChannelStream, ChannelStreamEvent> {
  const { collections, history, store } = core;
  const stateBefore = async (stream: EntityRef, next: StreamRevision): Promise<ChannelStream> => {
    const state = await history.at(stream, { sequence: next }, async (revision) => {
      if (revision + 1 !== next) return null;
      const before = {
        channel: await channelBefore(history, stream, revision),
        interactions: await openBefore({ collections, history, channel: stream }, revision),
      };
      // Of a truncated block, what is left: frames may lack what deleted events had set.
      return foldBlock(history, { type: channelFrames, stream, revision, before }, { needs: 'nothing' });
    });
    // The read models were deleted: the history is not rebuilt yet.
    if (state === null) throw new Fault('not_caught_up', 'The read models are being built', { retryAfterSeconds: 2 });
    return state;
  };
  return new StreamFrames(store, channelFrames, stateBefore, (channel) => erasedEvents(core, channel));
}

/** The channel before the block of events that contains `revision`; written by the fold, see `channelProjection`. */
async function channelBefore(history: HistoryReader, stream: EntityRef, revision: StreamRevision) {
  return (await history.keptBefore(stream, 'channel', revision)) as ChannelState;
}

async function foldBlock<State, E extends ChannelStreamEvent>(
  history: HistoryReader,
  of: {
    readonly type: Pick<Projection<State, E>, 'codec' | 'fold'>;
    readonly stream: EntityRef;
    readonly revision: StreamRevision;
    readonly before: State;
  },
  options?: Pick<ReadStreamOptions, 'needs'>,
): Promise<State> {
  const { codec, fold } = of.type;
  let state = of.before;
  for (const stored of await history.blockUpTo(of.stream, of.revision, options)) {
    const event = codec.types.has(stored.type) ? codec.decode(stored) : null;
    if (event !== null) state = fold.evolve(state, event);
  }
  return state;
}
