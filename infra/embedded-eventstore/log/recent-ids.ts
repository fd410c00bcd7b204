// The ids of recently committed events, so that a repeated append without an
// exact revision is recognised. Bounded by memory and lost on restart, as on
// the real server: best effort by contract.
import { LRUCache } from 'lru-cache';
import type { WrittenEvent } from './expected-revision.ts';

const MAX_BYTES = 8 * 1024 * 1024;
const BYTES_PER_ENTRY = 100;

type Entry = WrittenEvent & { stream: string };

export class RecentIds {
  #entries: LRUCache<string, Entry>;

  constructor(maxBytes = MAX_BYTES) {
    this.#entries = new LRUCache<string, Entry>({
      maxSize: maxBytes,
      sizeCalculation: (entry) => BYTES_PER_ENTRY + entry.stream.length,
    });
  }

  add(id: string, entry: Entry): void {
    this.#entries.set(id, entry);
  }

  /** Only an event of this stream counts. */
  find(stream: string, id: string): WrittenEvent | undefined {
    const entry = this.#entries.peek(id);
    return entry?.stream === stream ? entry : undefined;
  }
}
