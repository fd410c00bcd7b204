import { withinMemory } from '#libs/platform/config/index.ts';
import { LRUCache } from 'lru-cache';

import type { EntityWrite } from './read-model.ts';
import type { Snapshot } from './snapshot.ts';

const MAX_BYTES = withinMemory(64 * 1024 * 1024);
/** Memory of an entry beside its state. */
const ENTRY_BYTES = 1024;
/** Heap of a state per character of its JSON, as in the cache of commands. */
const BYTES_PER_CHARACTER = 2;
/** A state counts as grown by all that was written of it, until that is as long as it was, and at least this long. */
const MIN_GROWTH = 8 * 1024;

interface Entry extends Snapshot {
  /** Characters of the state when it was last measured, and of all that was written since then. */
  readonly measured: number;
  readonly grown: number;
}

/**
 * The states that a projector has folded last, by revision key, within a limit in bytes: the least recently used ones are
 * dropped, and read from the read model again. A state is measured as JSON, seldom enough that it costs little.
 */
export class FoldedStates {
  readonly #entries: LRUCache<string, Entry>;

  constructor(maxBytes = MAX_BYTES) {
    this.#entries = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: ({ measured, grown }) => ENTRY_BYTES + BYTES_PER_CHARACTER * (measured + grown),
    });
  }

  get bytes(): number {
    return this.#entries.calculatedSize;
  }

  get(revisionKey: string): Snapshot | undefined {
    return this.#entries.get(revisionKey);
  }

  /** @param state after the run that was written */
  put({ revisionKey, last, operations }: Omit<EntityWrite, 'lists'>, state: unknown): void {
    const before = this.#entries.peek(revisionKey);
    const grown = (before?.grown ?? 0) + charactersOf(operations);
    const isMeasured = before !== undefined && grown <= Math.max(MIN_GROWTH, before.measured);
    const size = isMeasured
      ? { measured: before.measured, grown }
      : { measured: JSON.stringify(state)?.length ?? 0, grown: 0 };
    this.#entries.set(revisionKey, { revision: last, state, ...size });
  }

  delete(revisionKey: string): void {
    this.#entries.delete(revisionKey);
  }
}

/** No event adds more to a state than to what is written. */
function charactersOf(operations: EntityWrite['operations']): number {
  let sum = 0;
  for (const { args } of operations) for (const arg of args) if (typeof arg !== 'number') sum += arg.length;
  return sum;
}
