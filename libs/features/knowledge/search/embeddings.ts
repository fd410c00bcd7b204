import { createHash } from 'node:crypto';

import type { EntityId } from '#libs/kernel/ids.ts';
import { allowedHostOf, type EmbeddingConfig, withinMemory } from '#libs/platform/config/index.ts';
import { createFetcher, type Fetcher } from '#libs/platform/fetch/index.ts';

import { Embedder, type EmbedderParts } from './embedder.ts';
import { EmbeddingEndpoint } from './embedding-endpoint.ts';
import type { VectorsOptions } from './graph-vectors.ts';
import type { SearchPlatform } from './search-measures.ts';

/** The vectors of an endpoint for embeddings: those of queries at once, those of facts in the background. */
export class Embeddings {
  readonly #fetcher: Fetcher;
  readonly #endpoint: EmbeddingEndpoint;
  readonly #embedder: Embedder;

  constructor(config: EmbeddingConfig, parts: SearchPlatform & Pick<EmbedderParts, 'threadOf'>) {
    // A fetcher of its own: the endpoint may have a private address, which no other request may reach through that.
    this.#fetcher = createFetcher({ metrics: parts.metrics, allowHosts: [allowedHostOf(config.baseUrl)] });
    const requests = parts.metrics.counter('embedding_requests_total', 'Requests for vectors, by purpose and outcome', [
      'purpose',
      'outcome',
    ]);
    this.#endpoint = new EmbeddingEndpoint({
      config,
      fetcher: this.#fetcher,
      onRequest: (purpose, outcome, failure) => {
        requests.add({ purpose, outcome });
        // Failures of facts are logged where it is known what they cost.
        if (purpose === 'query' && failure) parts.log.warn({ err: failure }, 'search: a query got no vector');
      },
    });
    this.#embedder = new Embedder({ ...parts, endpoint: this.#endpoint });
  }

  /** As {@link EmbeddingEndpoint.ofQuery}. */
  ofQuery(graphId: EntityId, query: string): Promise<Float32Array | null> {
    return this.#endpoint.ofQuery(graphId, query);
  }

  /** A search in the graph has ended. Facts that have no vectors yet get them. */
  asked(graphId: EntityId): void {
    this.#embedder.start(graphId);
  }

  /** A search in the graph has ended whose vector could not be compared with those of the facts. */
  unused(graphId: EntityId, query: string): void {
    this.#endpoint.forget(query);
    this.#embedder.changed(graphId);
  }

  /** The index of the graph has got new facts. */
  changed(graphId: EntityId): void {
    this.#embedder.changed(graphId);
  }

  async close(): Promise<void> {
    this.#embedder.close();
    await this.#fetcher.close();
  }
}

/** Of one graph. 174,000 vectors of 384 dimensions take 0.05 s. */
const MAX_VECTOR_BYTES = 64 * 1024 * 1024;

/** The key depends on all that makes vectors incomparable: the model, their length, and the prefix. */
export function vectorsOf({ model, dimensions, passagePrefix, minSimilarity }: EmbeddingConfig): VectorsOptions {
  const identity = passagePrefix === '' ? [model, dimensions] : [model, dimensions, passagePrefix];
  const key = createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 12);
  return { key, minSimilarity, maxBytes: withinMemory(MAX_VECTOR_BYTES) };
}
