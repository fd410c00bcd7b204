/** Events for tests of the log itself: valid metadata, and data that identifies the event. */
import { type Fold, foldEvents } from '#libs/kernel/decider.ts';
import { type DomainEvent, type EventMetadata, streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { EventToAppend } from '#libs/platform/eventstore/index.ts';

/** `count` events with `data: { n }`, `n` counting from `first`. */
export function numberedEvents(count: number, first = 0): EventToAppend[] {
  return Array.from({ length: count }, (_, index) => logEvent({ n: first + index }));
}

export function logEvent(data: object, type = 'Tested.v1'): EventToAppend {
  const id = newId();
  return { id, type, data, metadata: logMetadata(id) };
}

/** Metadata of an event that one command of a user has caused. */
export function logMetadata(commandId: string): EventToAppend['metadata'] {
  return {
    at: '2026-01-31T12:00:00.000Z',
    organizationId: 'organization-1',
    actor: { type: 'user', id: 'user-1' },
    commandId,
    $correlationId: commandId,
    $causationId: commandId,
  };
}

/** State of an entity after events that one command of `logMetadata` has caused. */
export function stateAfter<State, E extends DomainEvent>(fold: Fold<State, E>, events: readonly E[]): State {
  const metadata = logMetadata('command-1') as EventMetadata;
  return foldEvents(
    fold,
    fold.initialState,
    events.map((event, index) => ({ ...event, id: `event-${index}`, revision: streamRevision(index), metadata })),
  );
}
