/*
 * WARNING: the names and shapes of events are the storage format: the log keeps them forever. Never change one in place.
 * A new version is a new type, and the old one gets an upcaster.
 *
 * The stream `read_marker-<id>` holds how far one user has read in one channel. It is apart from the stream of the channel,
 * whose sequences and frames are of all participants.
 */
import { z } from 'zod';

import { accept, type Decision, type Fold } from '#libs/kernel/decider.ts';
import { changedBy, createdBy, type EntityState } from '#libs/kernel/entity.ts';
import { derivedId, type EntityId } from '#libs/kernel/ids.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';

/** Category of the streams, `read_marker-<id>`. */
export const READ_MARKER = 'read_marker';

export const readMarkerCodec = defineEvents({
  /** `sequence`: of the channel's last event that the user has read. It is higher than in the event before. */
  'ReadMarkerMoved.v1': z.object({ channelId: z.string(), userId: z.string(), sequence: z.int().positive() }),
});

export type ReadMarkerEvent = EventOf<typeof readMarkerCodec>;
export type ReadMarker = ReadMarkerEvent['data'] & EntityState;

/** `null` until the user has moved it. */
export type ReadMarkerState = ReadMarker | null;

/** @param channelId of a channel, which is a UUID */
export function readMarkerId({
  channelId,
  userId,
}: {
  readonly channelId: EntityId;
  readonly userId: EntityId;
}): EntityId {
  return derivedId(channelId, `read marker of ${userId}`);
}

export const readMarkerFold: Fold<ReadMarkerState, ReadMarkerEvent> = {
  initialState: null,
  evolve(state, event) {
    if (state === null) return { id: readMarkerId(event.data), ...event.data, ...createdBy(event) };
    return { ...state, sequence: event.data.sequence, ...changedBy(event) };
  },
};

/** Moves forward only: of two devices at once, the device that has read further decides. */
export function decideMove(state: ReadMarkerState, move: ReadMarkerEvent['data']): Decision<ReadMarkerEvent, never> {
  if (state !== null && move.sequence <= state.sequence) return accept();
  return accept({ type: 'ReadMarkerMoved.v1', data: move });
}
