import type { Timestamp } from './clock.ts';
import type { StreamEvent, StreamRevision } from './event.ts';
import type { EntityId } from './ids.ts';

/** Members of the state of every entity besides the fields of its own. */
export interface EntityState {
  readonly id: EntityId;
  readonly organizationId: EntityId;
  readonly createdAt: Timestamp;
  /** Time of the last event that changed the entity. */
  readonly modified: Timestamp;
  /** Revision of that event: the `ETag` of the entity. */
  readonly changedRevision: StreamRevision;
  /** A deleted entity has neither document nor list entry, and is answered as a missing one. */
  readonly deletedAt?: Timestamp | null;
}

/** For the event that creates an entity. */
export function createdBy({ revision, metadata: { at, organizationId } }: StreamEvent) {
  return { organizationId, createdAt: at, modified: at, changedRevision: revision };
}

/** For every later event that changes it. */
export function changedBy({ revision, metadata: { at } }: StreamEvent) {
  return { modified: at, changedRevision: revision };
}
