import { IndexCache, type IndexCacheOptions } from '#libs/platform/textindex/index.ts';

import { GraphIndex } from './graph-index.ts';
import type { VectorsOptions } from './graph-vectors.ts';

export interface GraphIndexesOptions extends IndexCacheOptions {
  /** Null: no vectors. */
  readonly vectors?: VectorsOptions | null;
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
