/** Search in graphs. */
export type {
  FactIds,
  FoundEdge,
  FoundNode,
  FoundSource,
  GraphCounts,
  Question,
  SearchResult,
} from './graph-questions.ts';
export { GraphSearch } from './graph-search.ts';
export { searchRoutes } from './search.http.ts';
