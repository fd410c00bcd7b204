/** Words in texts, and where they occur: files of postings, the threads that read and write them, and how words match. */
export { enlarged } from './columns.ts';
export { IndexCache, type IndexCacheOptions } from './index-cache.ts';
export { indexBeingBuilt, IndexQueries, indexUnavailable } from './index-queries.ts';
export { deleteIndexFile, IndexFile, isUnusable, parseRow, type Row, UnreadableRow } from './index-file.ts';
export { TermWriter, visitPostings, inMeanLength, rarityOf, saturated } from './postings.ts';
export { allowedTypos, typosBetween, type Variant, variantsOf } from './query-terms.ts';
export { type OpenMeasures, SearchThread, UnusableIndex, serveIndexes } from './thread-client.ts';
export { isStopWord, nameNumber, nameParts, queryWordCounts, queryWords, stemOf, wordsOf } from './tokens.ts';
