/** Search in graphs. */
import { join } from 'node:path';

import type { EmbeddingConfig } from '#libs/platform/config/index.ts';
import type { Core } from '#libs/platform/runtime/index.ts';

import type { GraphIndex } from './graph-index.ts';
import { GraphIndexes } from './graph-indexes.ts';

export type {
  FactIds,
  FoundEdge,
  FoundNode,
  FoundSource,
  GraphCounts,
  GraphIndex,
  GraphPoint,
  PastGraph,
  Question,
  SearchResult,
} from './graph-index.ts';
export { searchRoutes } from './search.http.ts';
export { allowedTypos, typosBetween } from './query-terms.ts';
export { isStopWord, queryWords, stemOf, wordsOf } from './tokens.ts';

/** The indexes of this process, which closes them when it ends. */
export function openGraphIndex(
  { store, metrics, log, cacheDir, closeFirst }: Core,
  embedding: EmbeddingConfig | null,
): GraphIndex {
  const indexes = new GraphIndexes({ store, metrics, log, folder: join(cacheDir, 'search'), embedding });
  closeFirst.push(() => indexes.close());
  return indexes;
}
