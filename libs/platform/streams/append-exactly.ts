import {
  type DomainEvent,
  type EventMetadata,
  type StreamEvent,
  type StreamRevision,
  streamRevision,
} from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import { type EntityId, eventIdOf } from '#libs/kernel/ids.ts';
import {
  encodeMetadata,
  type EventCodec,
  type EventStore,
  type EventToAppend,
  type StoreClock,
} from '#libs/platform/eventstore/index.ts';

type Appended = EventToAppend & { readonly revision: StreamRevision };

/**
 * Appends at exactly the expected revision, and measures this process's clock. An append without an answer is sent once
 * more: the ids are the same at the same expected revision, so the store acknowledges it again if the first one was
 * written.
 *
 * @returns false on a conflict
 * @throws `Fault` of `EventStore.append`
 */
export async function appendExactly(
  { store, clock }: { readonly store: EventStore; readonly clock: StoreClock },
  stream: string,
  expected: StreamRevision,
  events: readonly Appended[],
): Promise<boolean> {
  const [first] = events;
  if (first === undefined) return true;
  const sentAtMs = Date.now();
  const append = async () => (await store.append(stream, expected, events)).kind === 'appended';
  try {
    const isAppended = await append();
    if (isAppended) void clock.measure(stream, first, sentAtMs);
    return isAppended;
  } catch (unknown) {
    if (!(unknown instanceof Fault) || unknown.code !== 'outcome_unknown') throw unknown;
    return await append().catch((error: unknown) => {
      // A fault of the second append does not tell whether the first one was written.
      throw error instanceof Fault ? unknown : error;
    });
  }
}

/**
 * Events with their revisions and ids, and with their data and metadata as encoded for storage.
 *
 * @param at.source what the ids are derived from
 * @throws TypeError for events that do not fit their schema
 */
export function eventsToAppend<E extends DomainEvent>(
  codec: EventCodec<E>,
  events: readonly E[],
  at: { readonly after: StreamRevision; readonly source: EntityId; readonly metadata: EventMetadata },
): StreamEvent<E>[] {
  const metadata = encodeMetadata(at.metadata);
  return events.map((event, index) => ({
    ...event,
    data: codec.encode(event),
    id: eventIdOf(at.source, index),
    revision: streamRevision(at.after + 1 + index),
    metadata,
  }));
}
