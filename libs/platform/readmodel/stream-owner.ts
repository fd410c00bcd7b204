import { sequenceOf, streamRevision, type ChannelSequence } from '#libs/kernel/event.ts';
import { CorruptEventError } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { EventStore, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { parseStreamName, streamName } from '#libs/platform/streams/index.ts';

import type { EntityRef } from './read-model.keys.ts';

/**
 * The organization that an event belongs to: part of every key of its read model. Null for a foreign event.
 *
 * @throws CorruptEventError for an event of Parley without one
 */
export function organizationOf(event: StoredEvent): EntityId | null {
  if (event.foreign !== undefined) return null;
  const { metadata } = event;
  if (typeof metadata === 'object' && metadata !== null && 'organizationId' in metadata) {
    const { organizationId } = metadata;
    if (typeof organizationId === 'string' && organizationId !== '') return organizationId;
  }
  throw new CorruptEventError(`${event.type} ${event.stream}@${event.revision} has no organization`);
}

/** The entity of an event. Null for a foreign event, and for a damaged event, at which the projectors halt. */
export function entityOfEvent(event: StoredEvent): EntityRef | null {
  try {
    const organizationId = organizationOf(event);
    return organizationId === null ? null : { ...parseStreamName(event.stream), organizationId };
  } catch {
    return null;
  }
}

/**
 * The organization of a stream by its first event; null for a stream that another application began. Only the first
 * event is read: another application may have long streams whose names look like Parley's.
 *
 * @throws `Fault` `store_unavailable`
 */
export async function ownerOf(store: Pick<EventStore, 'readStream'>, stream: string): Promise<EntityId | null> {
  for await (const first of store.readStream(stream, { limit: 1, needs: 'nothing' })) return organizationOf(first);
  return null;
}

/** Foreign events at the end of a stream that are read at a time to find its organization. */
const PAGE = 100;

/**
 * Sequence of the entity's newest event; null if the organization has no such entity.
 *
 * @throws `Fault` `store_unavailable`
 */
export async function headOf(
  store: Pick<EventStore, 'readStream'>,
  { category, organizationId, id }: EntityRef,
): Promise<ChannelSequence | null> {
  const stream = streamName(category, id);
  let head: ChannelSequence | null = null;
  let newest: StoredEvent | null = null;
  // Read to its end: servers close a connection that cancels thousands of reads, as clients do that return all at once.
  for await (const event of store.readStream(stream, { direction: 'backwards', limit: 1 })) newest = event;
  for (let limit = PAGE; newest !== null; limit *= 2) {
    head ??= sequenceOf(newest.revision);
    let owner = organizationOf(newest);
    let oldest: StoredEvent = newest;
    if (owner === null) {
      for await (const event of store.readStream(stream, { direction: 'backwards', from: newest.revision, limit })) {
        owner ??= organizationOf(event);
        oldest = event;
      }
    }
    if (owner !== null) return owner === organizationId ? head : null;
    newest = oldest.revision < newest.revision ? oldest : null;
  }
  return null;
}

/**
 * @param after sequence of the last event that a reader has seen
 * @throws StreamGone if the next one was deleted
 */
export async function refuseDeleted(
  store: Pick<EventStore, 'readStream'>,
  { category, id }: Pick<EntityRef, 'category' | 'id'>,
  after: number,
  head: number,
): Promise<void> {
  if (after >= head) return;
  for await (const _next of store.readStream(streamName(category, id), { from: streamRevision(after), limit: 1 }))
    return;
}
