import { streamRevision } from '#libs/kernel/event.ts';
import type { EventStore } from './event-store.ts';
import { encodePosition } from './position.ts';

/** An event, and where it was read. */
export interface EventIdentity {
  readonly stream: string;
  readonly revision: number;
  readonly id: string;
  /** `commit/prepare`; empty if unknown. */
  readonly position: string;
}

/** Whether the log holds this event, at this place. A log that was restored from a copy of its events may not. */
export async function holdsEvent(
  store: Pick<EventStore, 'readStream'>,
  { stream, revision, id, position }: EventIdentity,
): Promise<boolean> {
  const from = streamRevision(revision);
  for await (const event of store.readStream(stream, { from, limit: 1 })) {
    if (event.revision !== from || event.id !== id) return false;
    return position === '' || event.position === null || encodePosition(event.position) === position;
  }
  return false;
}
