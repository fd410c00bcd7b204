import { LRUCache } from 'lru-cache';

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
