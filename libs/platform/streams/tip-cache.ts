import { LRUCache } from 'lru-cache';
import { withinMemory } from '#libs/platform/config/index.ts';
import type { Tip } from './fold-stream.ts';

/** Keeps entries in memory within a limit in bytes: drops the least recently used ones. */
export class ByteCache<Entry extends object> {
  protected readonly entries: LRUCache<string, Entry>;
  #evicted = 0;

  constructor(maxBytes: number, bytesOf: (entry: Entry) => number) {
    this.entries = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: bytesOf,
      dispose: (_entry, _key, reason) => {
        if (reason === 'evict') this.#evicted += 1;
      },
    });
  }

  get bytes(): number {
    return this.entries.calculatedSize;
  }

  get size(): number {
    return this.entries.size;
  }

  /** Entries that were dropped because of the limit. */
  get evicted(): number {
    return this.#evicted;
  }
}

const MAX_BYTES = withinMemory(128 * 1024 * 1024);
/** Memory of an entry beside its state. */
const ENTRY_BYTES = 1024;
/**
 * Heap of a state per character of its JSON; measured: 1.0 to 1.4, and twice that for texts beyond Latin-1. The JSON of
 * its resource, which lives as long as the state, is the rest.
 */
const BYTES_PER_CHARACTER = 2;
/** A state counts as grown by what was added to it until that is as large as it was, and at least this large. */
const MIN_GROWTH_BYTES = 4 * 1024;

/** The tip of a stream, and notes beside it. */
export interface KeptTip {
  readonly tip: Pick<Tip<unknown>, 'state' | 'revision'>;
  /** Memory of the notes. */
  readonly otherBytes?: number | undefined;
}

/** How an entry came from another one: no event adds more to a state than these bytes. */
export interface Growth {
  /** As it was got or taken. */
  readonly from: KeptTip;
  readonly bytes: number;
}

interface Entry extends KeptTip {
  /** Bytes of the state when it was last measured, and those added since then. */
  readonly measured: number;
  readonly grown: number;
}

/**
 * The tips of streams that a process keeps in memory; a dropped tip is read again. A tip is never wrong, only old: its user
 * appends at its revision, or reads on from there.
 *
 * A state is measured as JSON. That takes as long as the state is large, so it is repeated only after events of about the
 * same size: the cost of an event does not depend on the size of its entity.
 */
export class TipCache extends ByteCache<Entry> {
  constructor(maxBytes = MAX_BYTES) {
    super(maxBytes, ({ measured, grown, otherBytes = 0 }) => ENTRY_BYTES + measured + grown + otherBytes);
  }

  get(stream: string): KeptTip | undefined {
    return this.entries.get(stream);
  }

  /** Removes a tip and returns it: no other batch decides on it meanwhile. */
  take(stream: string): KeptTip | undefined {
    const entry = this.entries.get(stream);
    this.entries.delete(stream);
    return entry;
  }

  delete(stream: string): void {
    this.entries.delete(stream);
  }

  /** @param growth null if it is unknown */
  put<Kept extends KeptTip>(stream: string, kept: Kept, growth: Growth | null): void {
    const from = growth && (growth.from as Entry);
    const grown = (from?.grown ?? 0) + (growth?.bytes ?? 0);
    const isMeasured = from !== null && grown <= Math.max(MIN_GROWTH_BYTES, from.measured);
    const { measured } = isMeasured
      ? from
      : { measured: (JSON.stringify(kept.tip.state) ?? '').length * BYTES_PER_CHARACTER };
    this.entries.set(stream, { ...kept, measured, grown: isMeasured ? grown : 0 });
  }
}
