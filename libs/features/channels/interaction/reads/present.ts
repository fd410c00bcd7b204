import type { EntityId } from '#libs/kernel/ids.ts';
import type { Principal } from '#libs/platform/http/index.ts';
import type { CollectionReader } from '#libs/platform/readmodel/index.ts';

import { MAX_OPEN } from '../interaction.ts';
import { interactionKeys, type InteractionKeys } from './interaction.keys.ts';
import { annotated, isComplete, type Annotation } from './resource.ts';

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
  documents(keys: InteractionKeys, sequences: readonly number[]): Promise<(Buffer | null)[]>;
  incomplete(keys: InteractionKeys, sequences: readonly number[]): Promise<boolean[]>;
  /** The incomplete interactions of a range, at most {@link MAX_OPEN}. */
  incompleteIn(keys: InteractionKeys, bounds: SequenceBounds): Promise<number[]>;
}

/** The interactions of the read model. */
export class PresentInteractions implements InteractionView {
  readonly end = Infinity;
  readonly #collections: CollectionReader;

  constructor(collections: CollectionReader) {
    this.#collections = collections;
  }

  documents(keys: InteractionKeys, sequences: readonly number[]): Promise<(Buffer | null)[]> {
    return currentDocuments(this.#collections, keys, sequences);
  }

  incomplete(keys: InteractionKeys, sequences: readonly number[]): Promise<boolean[]> {
    return this.#collections.contained(keys.index('incomplete'), sequences);
  }

  incompleteIn(keys: InteractionKeys, bounds: SequenceBounds): Promise<number[]> {
    const page = { order: 'asc', offset: 0, limit: MAX_OPEN } as const;
    return this.#collections.numbers(keys.index('incomplete'), { ...bounds, ...page });
  }
}

/** Reads of interactions that complete between the reads of their two keys. */
const ATTEMPTS = 3;

/** The documents of the interactions as they are now; null for a missing one. Only incomplete ones cost a second read. */
export async function currentDocuments(
  collections: CollectionReader,
  keys: InteractionKeys,
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

function isIncomplete(document: Buffer | null | undefined): boolean {
  return document != null && !isComplete(document);
}

export interface Reader {
  /** Null for services, which have no reactions or messages of their own. */
  readonly userId: EntityId | null;
}

export function readerOf({ principalType, principalId }: Principal): Reader {
  return { userId: principalType === 'user' ? principalId : null };
}

/**
 * Port: annotations that other features add to interactions.
 *
 * Guarantees: sends its first request to Redis synchronously, so that it is batched with the other requests of the same
 * turn of the event loop. The result omits interactions without an annotation.
 */
export interface Annotations {
  /**
   * @param end excludes annotations by events from this sequence on; `Infinity` includes all
   * @throws `Fault` `store_unavailable`
   */
  of(
    organizationId: EntityId,
    channelId: EntityId,
    sequences: readonly number[],
    reader: Reader,
    end: number,
  ): Promise<ReadonlyMap<number, Annotation>>;
}

/** The channel, point in history and reader of a read. */
export interface Reading {
  readonly organizationId: EntityId;
  readonly channelId: EntityId;
  readonly view: InteractionView;
  /** Null: without annotations. */
  readonly reader: Reader | null;
}

/**
 * Interactions as one reader sees them, in the order of `sequences`; null for a missing one. Reads documents and
 * annotations in one batch.
 *
 * @throws `Fault` `store_unavailable`
 */
export async function readDocuments(
  annotations: Annotations,
  { organizationId, channelId, view, reader }: Reading,
  sequences: readonly number[],
): Promise<(Buffer | null)[]> {
  const keys = interactionKeys(organizationId, channelId);
  if (reader === null) return view.documents(keys, sequences);
  const [documents, added] = await Promise.all([
    view.documents(keys, sequences),
    annotations.of(organizationId, channelId, sequences, reader, view.end),
  ]);
  if (added.size === 0) return documents;
  return documents.map((document, index) => document && annotated(document, added.get(sequences[index] ?? 0)));
}
