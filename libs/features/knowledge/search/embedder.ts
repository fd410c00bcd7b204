import type { Logger } from 'pino';
import { LRUCache } from 'lru-cache';

import type { EntityId } from '#libs/kernel/ids.ts';
import { FairSemaphore, pause } from '#libs/platform/lifecycle/index.ts';
import type { Metrics } from '#libs/platform/telemetry/index.ts';

import { type EmbeddingEndpoint, TextsRefused } from './embedding-endpoint.ts';
import type { MissingVector } from './graph-vectors.ts';
import type { SearchThread } from './search-thread.ts';

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

export interface EmbedderParts {
  readonly endpoint: EmbeddingEndpoint;
  threadOf(graphId: EntityId): SearchThread;
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
  readonly #complete = new LRUCache<EntityId, true>({ max: MAX_REMEMBERED });

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
      await pause(endpoint.pauseMs, signal);
      try {
        const hasMore = await this.#turns.run(() => this.#embedSome(graphId), { group: graphId, signal });
        failures = 0;
        if (hasMore || this.#running.get(graphId) === true) this.#running.set(graphId, false);
        else return void this.#complete.set(graphId, true);
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        log.warn({ err: error, graph: graphId }, 'search: vectors of a graph could not be computed');
        await pause(Math.max(MIN_PAUSE_MS, endpoint.pauseMs), signal);
      }
    }
  }

  /** @returns whether there were texts without vectors */
  async #embedSome(graphId: EntityId): Promise<boolean> {
    const thread = this.#parts.threadOf(graphId);
    const missing = (await thread.run({ kind: 'missing-vectors', graphId, limit: BATCH })) as readonly MissingVector[];
    if (missing.length === 0) return false;
    const vectors = await this.#vectorsOf(missing);
    await thread.run({ kind: 'add-vectors', graphId, vectors });
    this.#texts.add({}, vectors.length);
    return true;
  }

  /** A text that the endpoint refuses by itself gets none, if the endpoint takes another one. */
  async #vectorsOf(missing: readonly MissingVector[]): Promise<(readonly [string, Float32Array | null])[]> {
    const { endpoint } = this.#parts;
    const { signal } = this.#closing;
    const paired = (vectors: readonly (Float32Array | null)[]) =>
      missing.map(({ key }, at) => [key, vectors[at] ?? null] as const);
    const refusals: TextsRefused[] = [];
    const orRefused = (error: unknown): null => {
      if (!(error instanceof TextsRefused)) throw error;
      refusals.push(error);
      return null;
    };
    const together = await endpoint
      .ofTexts(
        missing.map(({ text }) => text),
        signal,
      )
      .catch(orRefused);
    if (together !== null) return paired(together);
    const apart: (Float32Array | null)[] = [];
    for (const { text } of missing) {
      const [vector = null] = (await endpoint.ofTexts([text], signal).catch(orRefused)) ?? [];
      apart.push(vector);
    }
    if (apart.every((vector) => vector === null)) throw refusals[0];
    return paired(apart);
  }
}
