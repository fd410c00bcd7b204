import { hash } from 'node:crypto';

import { v7 } from 'uuid';

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
  return derivedId(source, String(index));
}

/** A name-based id (UUIDv5) under `namespace`: the same input gives the same id, on every machine. */
export function derivedId(namespace: EntityId, name: string): EntityId {
  const source = Buffer.from(namespace.replaceAll('-', ''), 'hex');
  if (source.length !== 16) throw new TypeError(`not a UUID: ${namespace}`);
  // RFC 9562, 5.5. The function of the package `uuid` takes four times as long, and pages have hundreds of facts.
  const bytes = hash('sha1', Buffer.concat([source, Buffer.from(name)]), 'buffer');
  bytes[6] = (bytes[6]! & 0x0f) | 0x50;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytes.toString('hex', 0, 16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
