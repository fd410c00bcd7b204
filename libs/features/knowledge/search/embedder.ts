import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { EntityId } from '#libs/kernel/ids.ts';
import { admitText } from '#libs/kernel/text.ts';
import { recentlyUsed } from '#libs/platform/caches/index.ts';
import { FairSemaphore, pause } from '#libs/platform/lifecycle/index.ts';
import type { Metrics } from '#libs/platform/telemetry/index.ts';
import type { SearchThread } from '#libs/platform/textindex/index.ts';
import { allowedHostOf, type EmbeddingConfig, withinMemory } from '#libs/platform/config/index.ts';
import { createFetcher, type Fetcher } from '#libs/platform/fetch/index.ts';
import { EmbeddingEndpoint, EndpointFailure } from './embedding-endpoint.ts';
import type { MissingVector, VectorsOptions } from './graph-vectors.ts';
import type { Task } from './thread-messages.ts';
import type { SearchPlatform } from './search-measures.ts';

/** Texts of one request: about 20,000 tokens at most. */
const BATCH = 32;
/** Requests at a time, over all graphs, which take turns. */
const REQUESTS = 2;
/** Failures in a row after which a graph waits for its next question or change. */
const MAX_FAILURES = 10;
/** After a failure that the endpoint does not explain, such as a full disk. */
const MIN_PAUSE_MS = 1_000;
/** Graphs whose facts all have vectors, as far as it is remembered. */
const MAX_REMEMBERED = 10_000;
/** The least that a text is cut to, for models that read less than a text has. */
const MIN_CHARACTERS = 250;

export interface EmbedderParts {
  readonly endpoint: EmbeddingEndpoint;
  threadOf(graphId: EntityId): SearchThread<Task>;
  readonly metrics: Pick<Metrics, 'counter'>;
  readonly log: Logger;
}

/** Computes the vectors of graphs in the background. What it has computed is stored, so it may end at any time. */
export class Embedder {
  readonly #parts: EmbedderParts;
  readonly #texts;
  readonly #turns = new FairSemaphore({ permits: REQUESTS });
  readonly #closing = new AbortController();
  /** True: something has changed since the run began. */
  readonly #running = new Map<EntityId, boolean>();
  readonly #complete = recentlyUsed<EntityId, true>(MAX_REMEMBERED);

  constructor(parts: EmbedderParts) {
    this.#parts = parts;
    this.#texts = parts.metrics.counter('embedded_texts_total', 'Texts of knowledge graphs that were embedded');
  }

  /** The index of the graph has got new facts. */
  changed(graphId: EntityId): void {
    this.#complete.delete(graphId);
    if (this.#running.has(graphId)) this.#running.set(graphId, true);
    else this.start(graphId);
  }

  /** Begins with the facts that have no vectors yet, if there may be any. */
  start(graphId: EntityId): void {
    if (this.#running.has(graphId) || this.#complete.has(graphId) || this.#closing.signal.aborted) return;
    this.#running.set(graphId, false);
    void this.#run(graphId).finally(() => this.#running.delete(graphId));
  }

  /** Ends the requests under way. */
  close(): void {
    this.#closing.abort();
  }

  async #run(graphId: EntityId): Promise<void> {
    const { endpoint, log } = this.#parts;
    const { signal } = this.#closing;
    for (let failures = 0; !signal.aborted && failures < MAX_FAILURES;) {
      await pause(endpoint.pauseMs(graphId), signal);
      try {
        const hasMore = await this.#embedSome(graphId);
        failures = 0;
        if (hasMore || this.#running.get(graphId) === true) this.#running.set(graphId, false);
        else return void this.#complete.set(graphId, true);
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        if (error instanceof EndpointFailure) endpoint.failed(graphId, error);
        log.warn({ err: error, graph: graphId }, 'search: vectors of a graph could not be computed');
        await pause(Math.max(MIN_PAUSE_MS, endpoint.pauseMs(graphId)), signal);
      }
    }
  }

  /** @returns whether there were texts without vectors */
  async #embedSome(graphId: EntityId): Promise<boolean> {
    const { endpoint, threadOf } = this.#parts;
    const thread = threadOf(graphId);
    const missing = (await thread.run({ kind: 'missing-vectors', graphId, limit: BATCH })) as readonly MissingVector[];
    if (missing.length === 0) return false;
    const batch = new EmbeddedBatch(graphId, this.#parts, (work) =>
      this.#turns.run(work, { group: graphId, signal: this.#closing.signal }),
    );
    await batch.embed(missing, this.#closing.signal);
    endpoint.succeeded(graphId);
    await thread.run({ kind: 'add-vectors', graphId, vectors: batch.vectors });
    this.#texts.add({}, batch.vectors.length);
    return true;
  }
}

/** The vectors of some texts, of which each that the endpoint cannot embed costs itself alone. */
class EmbeddedBatch {
  /** By the keys of the texts; null for one that the endpoint gives no vector for although it works. */
  readonly vectors: (readonly [key: string, vector: Float32Array | null])[] = [];
  readonly #graphId: EntityId;
  readonly #endpoint: EmbeddingEndpoint;
  readonly #log: Logger;
  readonly #withPermit: <T>(work: () => Promise<T>) => Promise<T>;
  /** The endpoint has embedded something since the batch began. */
  #hasWorked = false;

  constructor(
    graphId: EntityId,
    { endpoint, log }: Pick<EmbedderParts, 'endpoint' | 'log'>,
    withPermit: <T>(work: () => Promise<T>) => Promise<T>,
  ) {
    this.#graphId = graphId;
    this.#endpoint = endpoint;
    this.#log = log;
    this.#withPermit = withPermit;
  }

  /** @throws EndpointFailure if the endpoint embeds nothing at present */
  async embed(texts: readonly MissingVector[], signal: AbortSignal): Promise<void> {
    try {
      const vectors = await this.#withPermit(() =>
        this.#endpoint.ofTexts(
          texts.map(({ text }) => text),
          signal,
        ),
      );
      this.#hasWorked = true;
      const left: MissingVector[] = [];
      for (const [at, text] of texts.entries()) {
        const vector = vectors[at] ?? null;
        if (vector === null) left.push(text);
        else this.vectors.push([text.key, vector]);
      }
      if (left.length > 0) await this.embed(left, signal);
    } catch (error) {
      if (!(error instanceof EndpointFailure) || signal.aborted) throw error;
      await this.#embedApart(texts, error, signal);
    }
  }

  /** Halves texts that failed together, and marks a single one if the endpoint embeds others. */
  async #embedApart(texts: readonly MissingVector[], failure: EndpointFailure, signal: AbortSignal): Promise<void> {
    const [first] = texts;
    // A refusal of a single text says enough once the endpoint has worked; any other failure may be of the endpoint.
    const isCertain = this.#hasWorked && (texts.length > 1 || failure.isRefusal);
    if (!isCertain && !(await this.#withPermit(() => this.#endpoint.works(signal)))) throw failure;
    this.#hasWorked = true;
    if (first === undefined) return;
    if (texts.length > 1) {
      const half = Math.ceil(texts.length / 2);
      await this.embed(texts.slice(0, half), signal);
      await this.embed(texts.slice(half), signal);
    } else if (first.text.length >= 2 * MIN_CHARACTERS) {
      await this.embed([{ ...first, text: admitText(first.text, Math.floor(first.text.length / 2)) }], signal);
    } else {
      this.#log.warn({ err: failure, graph: this.#graphId }, 'search: the endpoint gives no vector for a text');
      this.vectors.push([first.key, null]);
    }
  }
}

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
