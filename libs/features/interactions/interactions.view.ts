import type { CollectionReader } from '#libs/platform/readmodel/index.ts';

import { MAX_OPEN } from './interaction.decider.ts';
import type { InteractionKeys } from './interactions.keys.ts';

/** Exclusive bounds. */
export interface SequenceBounds {
  readonly after?: number | undefined;
  readonly before?: number | undefined;
}

/**
 * A channel's interactions at one moment. What is found through the indexes (facets, the tree) never changes
 * once an interaction is posted, so a moment differs in no more than this.
 */
export interface InteractionView {
  /** Interactions from this sequence on are not there; `Infinity` in the present. */
  readonly end: number;
  /** The interactions as the API answers them, in the order of `sequences`; null where there is none. */
  documents(keys: InteractionKeys, sequences: readonly number[]): Promise<(Buffer | null)[]>;
  /** Which of the interactions are incomplete. */
  incomplete(keys: InteractionKeys, sequences: readonly number[]): Promise<boolean[]>;
  /** The incomplete interactions of a range, of which a channel has but a few. */
  incompleteIn(keys: InteractionKeys, bounds: SequenceBounds): Promise<number[]>;
}

/** Interactions as they are: what the read model holds. */
export class PresentInteractions implements InteractionView {
  readonly end = Infinity;
  readonly #collections: CollectionReader;

  constructor(collections: CollectionReader) {
    this.#collections = collections;
  }

  documents(keys: InteractionKeys, sequences: readonly number[]): Promise<(Buffer | null)[]> {
    return this.#collections.fields(keys.documents, sequences);
  }

  incomplete(keys: InteractionKeys, sequences: readonly number[]): Promise<boolean[]> {
    return this.#collections.contained(keys.index('incomplete'), sequences);
  }

  incompleteIn(keys: InteractionKeys, bounds: SequenceBounds): Promise<number[]> {
    const page = { order: 'asc', offset: 0, limit: MAX_OPEN } as const;
    return this.#collections.numbers(keys.index('incomplete'), { ...bounds, ...page });
  }
}

/** Those of the interactions that are complete. */
export async function complete(
  view: InteractionView,
  keys: InteractionKeys,
  sequences: readonly number[],
): Promise<number[]> {
  const incomplete = await view.incomplete(keys, sequences);
  return sequences.filter((_, index) => incomplete[index] !== true);
}
