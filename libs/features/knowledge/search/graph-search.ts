import { availableParallelism } from 'node:os';

import type { StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { EmbeddingConfig } from '#libs/platform/config/index.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import { IndexQueries, SearchThread } from '#libs/platform/textindex/index.ts';

import { CatchUps } from './catch-up.ts';
import type {
  FactIds,
  FoundEdge,
  FoundNode,
  GraphCounts,
  GraphPoint,
  PastGraph,
  PlannedPoint,
  PlannedQuestion,
  Question,
  SearchResult,
} from './graph-questions.ts';
import { Embeddings, vectorsOf } from './embedder.ts';
import { searchMeasures, type SearchMeasures, type SearchPlatform } from './search-measures.ts';
import type { Task } from './thread-messages.ts';

const SCRIPT = new URL('./search.thread.ts', import.meta.url);
const MAX_THREADS = 2;
/** Of all threads together. */
const MAX_OPEN = 64;
const MAX_BYTES = 512 * 1024 * 1024;
/** Queries that are handed to a thread at a time; the others wait here, where graphs take turns. */
const QUERIES_PER_THREAD = 2;
const MAX_WAITING = 512;
const MAX_WAITING_PER_GRAPH = 128;

interface GraphSearchOptions extends SearchPlatform {
  readonly store: Pick<EventStore, 'readStream'>;
  /** Folder of the files; it is created. Other processes may use it at the same time. */
  readonly folder: string;
  /** Default: as many as help, at most two. */
  readonly threads?: number;
  /** How long a question waits for its turn. Default: 4,000. */
  readonly maxWaitMs?: number;
  /** Null: words alone are compared. */
  readonly embedding?: EmbeddingConfig | null;
}

/**
 * The facts of graphs, indexed by the streams of the graphs: in files of this machine, which threads of this process bring up to
 * date and answer from. Callers check that the graph belongs to the organization and is not deleted.
 *
 * Guarantees: every answer reflects all events that were in the stream before the call. The same question about the same
 * events has the same answer in every process; with `asOf`, also after later events. With vectors, these must be the same
 * too: they follow the events, and processes may have computed them differently far.
 *
 * Methods that answer throw `Fault`: `store_unavailable`, `not_caught_up` when an index takes longer to build, `overloaded`.
 */
export class GraphSearch {
  readonly threads: readonly SearchThread<Task>[];
  readonly #catchUps: CatchUps;
  readonly #measures: SearchMeasures;
  readonly #queries: IndexQueries;
  readonly #embeddings: Embeddings | null;

  constructor({
    store,
    folder,
    metrics,
    log,
    threads = usefulThreads(),
    maxWaitMs,
    embedding = null,
  }: GraphSearchOptions) {
    const options = {
      folder,
      maxOpen: Math.max(1, Math.floor(MAX_OPEN / threads)),
      maxBytes: MAX_BYTES / threads,
      vectors: embedding && vectorsOf(embedding),
    };
    this.threads = Array.from(
      { length: threads },
      () => new SearchThread<Task>(SCRIPT, options, (error) => log.error({ err: error }, 'the search thread has died')),
    );
    this.#measures = searchMeasures(metrics, () => this.threads.map(({ open }) => open));
    const threadOf = (id: EntityId) => this.#threadOf(id);
    this.#embeddings = embedding && new Embeddings(embedding, { threadOf, metrics, log });
    this.#catchUps = new CatchUps({
      store,
      threadOf,
      onApplied: (graphId, events) => {
        this.#measures.applied(events);
        this.#embeddings?.changed(graphId);
      },
    });
    this.#queries = new IndexQueries({
      permits: threads * QUERIES_PER_THREAD,
      maxWaiting: MAX_WAITING,
      maxWaitingInGroup: MAX_WAITING_PER_GRAPH,
      maxWaitMs,
      onRebuilt: this.#measures.rebuilt,
    });
  }

  /** Null where `asOf` is before the first event of the graph. */
  search(graphId: EntityId, { query, limit, validAt, asOf }: Question): Promise<SearchResult | null> {
    const times = {
      validAtMs: validAt === undefined ? null : Date.parse(validAt),
      asOf: asOf === undefined ? null : planned(asOf),
      nowMs: Date.now(),
    };
    return this.#measures.query(this.#search(graphId, { query, limit, ...times }));
  }

  async #search(graphId: EntityId, question: PlannedQuestion): Promise<SearchResult | null> {
    // While the index catches up.
    const asked = this.#embeddings?.ofQuery(graphId, question.query);
    let vector: Float32Array | null = null;
    const result = await this.#queries.run(
      graphId,
      async () => {
        await this.#catchUps.toEnd(graphId);
        vector = (await asked) ?? null;
      },
      () => this.#ask<SearchResult | null>({ kind: 'search', graphId, question: { ...question, vector } }),
    );
    if (result !== null) this.#measures.ranked(result.ranking);
    const isUnused = result?.ranking === 'words' && vector !== null;
    if (isUnused) this.#embeddings?.unused(graphId, question.query);
    else this.#embeddings?.asked(graphId);
    return result;
  }

  /** Null where `point` is before the first event of the graph. */
  past(graphId: EntityId, point: GraphPoint): Promise<PastGraph | null> {
    return this.#answer({ kind: 'past', graphId, point: planned(point) });
  }

  /** The counts as of a revision of the stream, which belong to its `ETag`. */
  counts(graphId: EntityId, revision: StreamRevision): Promise<GraphCounts> {
    return this.#answer({ kind: 'counts', graphId, revision });
  }

  /** The nodes and edges that the graph has, in the order of the ids. */
  facts(
    graphId: EntityId,
    ids: FactIds,
  ): Promise<{ readonly nodes: readonly FoundNode[]; readonly edges: readonly FoundEdge[] }> {
    return this.#answer({ kind: 'facts', graphId, ids });
  }

  /** Brings the index up to date in the background, so that the next question waits less. */
  prepare(graphId: EntityId): void {
    // The next question reports the failure.
    this.#catchUps.toEnd(graphId).catch(() => undefined);
  }

  /** Deletes what this process has of a deleted graph. Never rejects. */
  async remove(graphId: EntityId): Promise<void> {
    // Files that stay are deleted after a time without use.
    await this.#threadOf(graphId)
      .run({ kind: 'remove', graphId })
      .catch(() => undefined);
  }

  async close(): Promise<void> {
    await Promise.all([...this.threads.map((thread) => thread.close()), this.#embeddings?.close()]);
  }

  #answer<T>(task: Task): Promise<T> {
    return this.#queries.run(
      task.graphId,
      () => this.#catchUps.toEnd(task.graphId),
      () => this.#ask<T>(task),
    );
  }

  async #ask<T>(task: Task): Promise<T> {
    return (await this.#threadOf(task.graphId).run(task)) as T;
  }

  /** A graph has one thread, so that its file is open once in this process. */
  #threadOf(graphId: string): SearchThread<Task> {
    let sum = 0;
    for (const character of graphId) sum = (sum * 31 + (character.codePointAt(0) ?? 0)) % 65_537;
    const thread = this.threads[sum % this.threads.length];
    if (thread === undefined) throw new TypeError('there is no search thread');
    return thread;
  }
}

function planned(point: GraphPoint): PlannedPoint {
  return 'at' in point ? { atMs: Date.parse(point.at) } : point;
}

function usefulThreads(): number {
  return Math.max(1, Math.min(MAX_THREADS, availableParallelism() - 1));
}
