import type { Caller } from '#libs/kernel/acting.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CollectionReader } from '#libs/platform/readmodel/index.ts';

import { MAX_OPEN } from '../interaction.ts';
import type { ChannelKeys } from '../../channel.keys.ts';
import { isComplete } from './resource.ts';

/** Exclusive bounds. */
export interface SequenceBounds {
  readonly after?: number | undefined;
  readonly before?: number | undefined;
}

/**
 * A channel's interactions at one point in its history. The indexes (facets, tree) of an interaction do not change after
 * it is posted, so points differ only in the results of these methods.
 */
export interface InteractionView {
  /** The first sequence after the point; `Infinity` in the present. */
  readonly end: number;
  /** The documents of the interactions, in the order of `sequences`; null for a missing one. */
  documents(keys: ChannelKeys, sequences: readonly number[]): Promise<(Buffer | null)[]>;
  /** The incomplete interactions of a range, at most {@link MAX_OPEN}. */
  incompleteIn(keys: ChannelKeys, bounds: SequenceBounds): Promise<number[]>;
}

/** The interactions of the read model. */
export class PresentInteractions implements InteractionView {
  readonly end = Infinity;
  readonly #collections: CollectionReader;

  constructor(collections: CollectionReader) {
    this.#collections = collections;
  }

  documents(keys: ChannelKeys, sequences: readonly number[]): Promise<(Buffer | null)[]> {
    return currentDocuments(this.#collections, keys, sequences);
  }

  incompleteIn(keys: ChannelKeys, bounds: SequenceBounds): Promise<number[]> {
    const page = { order: 'asc', offset: 0, limit: MAX_OPEN } as const;
    return this.#collections.numbers(keys.index('incomplete'), { ...bounds, ...page });
  }
}

/** Reads of interactions that complete between the reads of their two keys. */
const ATTEMPTS = 3;

/** The documents of the interactions as they are now; null for a missing one. Only incomplete ones cost a second read. */
export async function currentDocuments(
  collections: CollectionReader,
  keys: ChannelKeys,
  sequences: readonly number[],
): Promise<(Buffer | null)[]> {
  const found = await collections.fields(keys.documents, sequences);
  let stale = [...found.keys()].filter((index) => isIncomplete(found[index]));
  for (let attempt = 1; stale.length > 0; attempt++) {
    const open = await collections.texts(stale.map((index) => keys.open(sequences[index] ?? 0)));
    for (const [nth, index] of stale.entries()) found[index] = open[nth] ?? null;
    stale = stale.filter((index) => found[index] === null);
    if (stale.length === 0 || attempt === ATTEMPTS) break;
    // Complete by now.
    const again = await collections.fields(
      keys.documents,
      stale.map((index) => sequences[index] ?? 0),
    );
    for (const [nth, index] of stale.entries()) found[index] = again[nth] ?? null;
    stale = stale.filter((index) => isIncomplete(found[index]));
  }
  return found;
}

/**
 * The same where it is known which interactions are incomplete, all requested at the end of this iteration of the event
 * loop; null also for one that has changed since.
 */
export async function documentsAtOnce(
  collections: CollectionReader,
  keys: ChannelKeys,
  sequences: readonly number[],
  incomplete: ReadonlySet<number>,
): Promise<(Buffer | null)[]> {
  const open = sequences.filter((sequence) => incomplete.has(sequence));
  const [found, texts] = await Promise.all([
    collections.fields(keys.documents, sequences, { isUndivided: true }),
    open.length === 0 ? [] : collections.texts(open.map((sequence) => keys.open(sequence))),
  ]);
  if (open.length === 0) return found;
  const byPlace = new Map(open.map((sequence, nth) => [sequences.indexOf(sequence), texts[nth] ?? null]));
  return found.map((document, place) => {
    const text = byPlace.get(place);
    return text === undefined ? document : text;
  });
}

function isIncomplete(document: Buffer | null | undefined): boolean {
  return document != null && !isComplete(document);
}

/** The caller of a read, as far as its annotations depend on it. */
export interface Reader {
  /** Null for services, which have no reactions or messages of their own. */
  readonly userId: EntityId | null;
  /** Whether reactions name the users and agents by their ids. */
  readonly namesReactors?: boolean;
}

export function readerOf({ principalType, principalId }: Caller): Reader {
  return { userId: principalType === 'user' ? principalId : null };
}
