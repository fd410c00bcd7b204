import { withinMemory } from '#libs/platform/config/index.ts';
import { LRUCache } from 'lru-cache';

const MAX_BYTES = withinMemory(128 * 1024 * 1024);
/** Memory of an entry beside its state, and of each command that it remembers. */
const ENTRY_BYTES = 1024;
const COMMAND_BYTES = 100;
/**
 * Heap of a state per character of its JSON; measured: 1.0 to 1.4, and twice that for texts beyond Latin-1. The JSON of
 * its resource, which lives as long as the state, is the rest.
 */
const BYTES_PER_CHARACTER = 2;
/** A state counts as grown by the data of its events until they are as large as it was, and at least this large. */
const MIN_GROWTH_BYTES = 4 * 1024;

/** An entity between commands: its state, and the commands that it is known to have run. */
export interface CachedEntity {
  readonly tip: { readonly state: unknown };
  readonly recent: { readonly size: number } | undefined;
}

interface Entry extends CachedEntity {
  /** Bytes of the state when it was last measured, and of the data of the events since then. */
  readonly measured: number;
  readonly grown: number;
}

/**
 * The entities that the command handlers of a process keep in memory, by stream, within one limit in bytes: the least
 * recently used ones are dropped, and read again for their next command.
 *
 * A state is measured as JSON. That takes as long as the state is large, so it is repeated only after events of about the
 * same size: the cost of a command does not depend on the size of its entity.
 */
export class EntityCache {
  readonly #entries: LRUCache<string, Entry>;
  #evicted = 0;

  constructor(maxBytes = MAX_BYTES) {
    this.#entries = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: ({ measured, grown, recent }) =>
        ENTRY_BYTES + measured + grown + (recent?.size ?? 0) * COMMAND_BYTES,
      dispose: (_entry, _stream, reason) => {
        if (reason === 'evict') this.#evicted += 1;
      },
    });
  }

  get bytes(): number {
    return this.#entries.calculatedSize;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Entities that were dropped because of the limit. */
  get evicted(): number {
    return this.#evicted;
  }

  /** Removes an entity and returns what the handler of its stream has put. */
  take(stream: string): CachedEntity | undefined {
    const entry = this.#entries.get(stream);
    this.#entries.delete(stream);
    return entry;
  }

  /** @param growth the entity as it was taken, and the bytes of the events since then; null if these are unknown */
  put(
    stream: string,
    { tip, recent }: CachedEntity,
    growth: { readonly from: CachedEntity; readonly bytes: number } | null,
  ): void {
    const from = growth && (growth.from as Entry);
    const grown = (from?.grown ?? 0) + (growth?.bytes ?? 0);
    const isMeasured = from !== null && grown <= Math.max(MIN_GROWTH_BYTES, from.measured);
    const { measured } = isMeasured
      ? from
      : { measured: (JSON.stringify(tip.state) ?? '').length * BYTES_PER_CHARACTER };
    this.#entries.set(stream, { tip, recent, measured, grown: isMeasured ? grown : 0 });
  }
}
