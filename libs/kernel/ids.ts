import { v5, v7 } from 'uuid';

/**
 * Identifier of an entity: a UUIDv7, so that ids sort by time of creation. Ids that callers bring
 * (agents of another registry, say) may be any string of {@link ENTITY_ID}.
 */
export type EntityId = string;

/** What an id in a path may look like; anything else cannot exist and is 404 without a look-up. */
export const ENTITY_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** A new time-ordered id (UUIDv7, monotonic within this process). */
export function newId(): EntityId {
  return v7();
}

/**
 * Id of the `index`-th event of a command, or of one request for it (UUIDv5 of its id and the index): an append
 * that is sent again has events with the same ids, by which the event store recognises them.
 */
export function eventIdOf(source: EntityId, index: number): string {
  return v5(String(index), source);
}

/** A name-based id (UUIDv5) under `namespace`: the same input gives the same id, on every machine. */
export function derivedId(namespace: EntityId, name: string): EntityId {
  return v5(name, namespace);
}
