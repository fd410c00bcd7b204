import { v5, v7 } from 'uuid';

/**
 * Id of an entity: a UUIDv7, so ids sort by creation time. Ids from callers (such as agents of another registry) may be
 * any string that matches {@link ENTITY_ID}.
 */
export type EntityId = string;

/** The form of ids in paths; any other id is 404 without a look-up. */
export const ENTITY_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** A new time-ordered id (UUIDv7, monotonic within this process). */
export function newId(): EntityId {
  return v7();
}

/**
 * Id of the `index`-th event of a command, or of a request for it (UUIDv5 of its id and the index). The event store
 * recognizes a repeated append by these ids.
 */
export function eventIdOf(source: EntityId, index: number): string {
  return v5(String(index), source);
}

/** A name-based id (UUIDv5) under `namespace`: the same input gives the same id, on every machine. */
export function derivedId(namespace: EntityId, name: string): EntityId {
  return v5(name, namespace);
}
