/** Search in graphs. */
import { join } from 'node:path';

import type { EmbeddingConfig } from '#libs/platform/config/index.ts';
import type { Core } from '#libs/platform/runtime/index.ts';

import type { GraphSearch } from './graph-search.ts';
import { ThreadedGraphSearch } from './graph-search.threads.ts';

export type {
  FactIds,
  FoundEdge,
  FoundNode,
  FoundSource,
  GraphCounts,
  GraphSearch,
  Question,
  SearchResult,
} from './graph-search.ts';
export { allowedTypos, isStopWord, queryWords, stemOf, typosBetween, wordsOf } from '#libs/platform/textindex/index.ts';
export { searchRoutes } from './search.http.ts';

/** The indexes of this process, which closes them when it ends. */
export function openGraphSearch(
  { store, metrics, log, cacheDir, closeFirst }: Core,
  embedding: EmbeddingConfig | null,
): GraphSearch {
  const indexes = new ThreadedGraphSearch({ store, metrics, log, folder: join(cacheDir, 'search'), embedding });
  closeFirst.push(() => indexes.close());
  return indexes;
}
