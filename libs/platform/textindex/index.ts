/** Words in texts, and where they occur: files of postings, the threads that read and write them, and how words match. */
export { inMeanLength, rarityOf, saturated } from './bm25.ts';
export { IndexCache, type IndexCacheOptions } from './index-cache.ts';
export { deleteIndexFile, IndexFile, isUnusable, parseRow, type Row, UnreadableRow } from './index-file.ts';
export { TermWriter, visitPostings } from './postings.ts';
export { allowedTypos, typosBetween, type Variant, variantsOf } from './query-terms.ts';
export { serveIndexes } from './serve-indexes.ts';
export { type OpenMeasures, SearchThread, UnusableIndex } from './thread-client.ts';
export { isStopWord, nameNumber, nameParts, queryWordCounts, queryWords, stemOf, wordsOf } from './tokens.ts';
