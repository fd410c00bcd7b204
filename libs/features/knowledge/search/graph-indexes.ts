import { IndexCache, type IndexCacheOptions } from '#libs/platform/textindex/index.ts';

import { GraphIndex } from './graph-index.ts';

export interface GraphIndexesOptions extends IndexCacheOptions {
  /** Null: no vectors. `key` names the model: vectors of another one are in other files. */
  readonly vectors?: { readonly key: string; readonly minSimilarity: number } | null;
}

/** The open indexes of graphs. Vectors stay when an index is deleted, as they follow from texts. */
export class GraphIndexes extends IndexCache<GraphIndex> {
  constructor({ vectors = null, ...options }: GraphIndexesOptions) {
    super(options, {
      endings: vectors === null ? ['sqlite'] : ['sqlite', `${vectors.key}.vectors`],
      open: ([path, vectorPath]) => new GraphIndex(path, vectors && { ...vectors, path: vectorPath ?? '' }),
    });
  }
}
