import { z } from 'zod';
import { streamRevision } from '#libs/kernel/event.ts';
import type { LogFeed } from './event-feed.ts';
import type { EventStore, StoredEvent } from './event-store.ts';
import { comparePositions, decodePosition, encodePosition } from './position.ts';

/** An event of a log, by which the log is recognized. WARNING: it is stored, in Redis and in Kafka. */
export const eventIdentity = z.object({
  stream: z.string().min(1),
  revision: z.int().nonnegative(),
  id: z.string().min(1),
  /** `commit/prepare`; empty if unknown. */
  position: z.string(),
});
export type EventIdentity = Readonly<z.infer<typeof eventIdentity>>;

export function identityOf({ stream, revision, id, position }: StoredEvent): EventIdentity {
  return { stream, revision, id, position: position ? encodePosition(position) : '' };
}

/** The log, as far as events are looked up in it. */
export interface WitnessedLog {
  readonly store: Pick<EventStore, 'readStream'>;
  readonly feed: Pick<LogFeed, 'head' | 'idAt' | 'mayHaveRemoved'>;
}

/**
 * Whether this is the log that the event is of.
 *
 * Operators delete and truncate streams, and limit their age or length: then the event may be missing in the log that it
 * is of. The log must still reach its position; a log that was set back does not, even if its operator limits streams.
 */
export async function holdsEvent(
  { store, feed }: WitnessedLog,
  { stream, revision, id, position }: EventIdentity,
): Promise<boolean> {
  const from = streamRevision(revision);
  for await (const event of store.readStream(stream, { from, limit: 1, needs: 'nothing' })) {
    if (event.revision === from) return event.id === id;
  }
  if (position === '') return feed.mayHaveRemoved(stream, from);
  const at = decodePosition(position);
  const head = await feed.head();
  if (head === null || comparePositions(head, at) < 0) return false;
  // Removed from the stream, and still in the files.
  return (await feed.idAt(at)) === id || feed.mayHaveRemoved(stream, from);
}
