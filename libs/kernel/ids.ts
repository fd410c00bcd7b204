import { hash } from 'node:crypto';

import { v7 } from 'uuid';

/**
 * Id of an entity: a UUIDv7, so ids sort by creation time. Ids from callers (such as agents of another registry) may be
 * any string that matches {@link ENTITY_ID}.
 */
export type EntityId = string;

/** The form of ids in paths; any other id is 404 without a look-up. */
export const ENTITY_ID = /^[A-Za-z0-9_-]{1,64}$/;

const UUID = /^[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}$/i;

/** A UUID in lower case with hyphens, in which Parley stores it; any other id as it is. */
export function canonicalId(id: string): EntityId {
  if (!UUID.test(id)) return id;
  const hex = id.toLowerCase();
  return hex.length > 32
    ? hex
    : `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

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

const NAMESPACE_BYTES = 16;
/** Most names of ids fit in it; a new buffer for each would cost as much as the hash. */
const shared = Buffer.alloc(256);
/** The namespace whose bytes are in it: most ids are derived from the same one as the id before. */
let sharedNamespace: EntityId | null = null;

/** A name-based id (UUIDv5) under `namespace`: the same input gives the same id, on every machine. */
export function derivedId(namespace: EntityId, name: string): EntityId {
  const length = NAMESPACE_BYTES + Buffer.byteLength(name);
  const source = length <= shared.length ? shared : Buffer.alloc(length);
  if (source !== shared || namespace !== sharedNamespace) {
    // A text that is no UUID may overwrite the bytes.
    sharedNamespace = null;
    if (source.write(namespace.replaceAll('-', ''), 'hex') !== NAMESPACE_BYTES) {
      throw new TypeError(`not a UUID: ${namespace}`);
    }
    if (source === shared) sharedNamespace = namespace;
  }
  source.write(name, NAMESPACE_BYTES);
  // RFC 9562, 5.5. The function of the package `uuid` takes seven times as long, and pages have hundreds of facts.
  const hex = hash('sha1', source.subarray(0, length), 'hex');
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
