import type { AllStreamResolvedEvent, ResolvedEvent } from '@eventstore/db-client';
import { streamRevision } from '#libs/kernel/event.ts';
import type { StoredEvent } from './event-store.ts';

/**
 * The client's event as the port's; null for what no fold may see: links whose target is gone, and
 * events of the server itself (`$…`, such as the tombstone of a deleted stream).
 */
export function toStoredEvent(resolved: ResolvedEvent | AllStreamResolvedEvent): StoredEvent | null {
  const { event } = resolved;
  if (!event || event.type.startsWith('$')) return null;
  return {
    stream: event.streamId,
    revision: streamRevision(Number(event.revision)),
    position: event.position ?? null,
    id: event.id,
    type: event.type,
    data: event.data,
    metadata: event.metadata,
    createdMs: event.created.getTime(),
  };
}
