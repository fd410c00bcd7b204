import type { DomainEvent, StreamEvent } from '#libs/kernel/event.ts';

import type { EventCodec } from './event-codec.ts';
import type { StoredEvent } from './event-store.ts';

/**
 * One codec for a stream in which several features write, each with event types of its own.
 *
 * Errors: `TypeError` when two of them declare the same type.
 */
export function composeCodecs<E extends DomainEvent>(codecs: readonly EventCodec<E>[]): EventCodec<E> {
  const owners = new Map<string, EventCodec<E>>();
  for (const codec of codecs) {
    for (const type of codec.types) {
      if (owners.has(type)) throw new TypeError(`two features of one stream declare ${type}`);
      owners.set(type, codec);
    }
  }
  const [first] = codecs;
  if (first === undefined) throw new TypeError('a stream needs at least one codec');
  // Types that nobody declares are counted by the first one.
  const ownerOf = (type: string): EventCodec<E> => owners.get(type) ?? first;
  return {
    types: new Set(owners.keys()),
    skipped: first.skipped,
    encode: (event) => ownerOf(event.type).encode(event),
    decode: (stored: StoredEvent): StreamEvent<E> | null => ownerOf(stored.type).decode(stored),
  };
}
