import { availableParallelism } from 'node:os';

import type { StreamRevision } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { EmbeddingConfig } from '#libs/platform/config/index.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import { FairSemaphore, QueueFull } from '#libs/platform/lifecycle/index.ts';

import { SearchThread, UnusableIndex } from '#libs/platform/textindex/index.ts';

import { CatchUps } from './catch-up.ts';
import type {
  FactIds,
  FoundEdge,
  FoundNode,
  GraphCounts,
  GraphSearch,
  GraphPoint,
  PastGraph,
  PlannedPoint,
  PlannedQuestion,
  Question,
  SearchResult,
} from './graph-search.ts';
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
/** In this queue; work that has begun is answered. */
const MAX_WAIT_MS = 4_000;
/** An index that another thread's death or a damaged file took is built again at most so often for one query. */
const ATTEMPTS = 3;

export interface ThreadedGraphSearchOptions extends SearchPlatform {
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

/** Keeps the indexes of graphs in files of this machine, and answers from them in threads of its own. */
export class ThreadedGraphSearch implements GraphSearch {
  readonly threads: readonly SearchThread<Task>[];
  readonly #catchUps: CatchUps;
  readonly #measures: SearchMeasures;
  readonly #turns: FairSemaphore;
  readonly #maxWaitMs: number;
  readonly #embeddings: Embeddings | null;

  constructor(parts: ThreadedGraphSearchOptions) {
    const { store, folder, metrics, log, threads = usefulThreads(), embedding = null } = parts;
    const { maxWaitMs = MAX_WAIT_MS } = parts;
    this.#maxWaitMs = maxWaitMs;
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
    this.#turns = new FairSemaphore({
      permits: threads * QUERIES_PER_THREAD,
      maxWaiting: MAX_WAITING,
      maxWaitingInGroup: MAX_WAITING_PER_GRAPH,
    });
  }

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
    const answer = await this.#answer(graphId, async () => {
      return { kind: 'search', graphId, question: { ...question, vector: (await asked) ?? null } };
    });
    const result = answer as SearchResult | null;
    if (result !== null) this.#measures.ranked(result.ranking);
    const isUnused = result?.ranking === 'words' && (await asked) instanceof Float32Array;
    if (isUnused) this.#embeddings?.unused(graphId, question.query);
    else this.#embeddings?.asked(graphId);
    return result;
  }

  past(graphId: EntityId, point: GraphPoint): Promise<PastGraph | null> {
    return this.#answer(graphId, () => ({ kind: 'past', graphId, point: planned(point) })) as Promise<PastGraph | null>;
  }

  counts(graphId: EntityId, revision: StreamRevision): Promise<GraphCounts> {
    return this.#answer(graphId, () => ({ kind: 'counts', graphId, revision })) as Promise<GraphCounts>;
  }

  facts(
    graphId: EntityId,
    ids: FactIds,
  ): Promise<{ readonly nodes: readonly FoundNode[]; readonly edges: readonly FoundEdge[] }> {
    return this.#answer(graphId, () => ({ kind: 'facts', graphId, ids })) as ReturnType<GraphSearch['facts']>;
  }

  prepare(graphId: EntityId): void {
    // The next question reports what is wrong.
    this.#catchUps.toEnd(graphId).catch(() => undefined);
  }

  async remove(graphId: EntityId): Promise<void> {
    // Files that stay are deleted after a time without use.
    await this.#threadOf(graphId)
      .run({ kind: 'remove', graphId })
      .catch(() => undefined);
  }

  async close(): Promise<void> {
    await Promise.all([...this.threads.map((thread) => thread.close()), this.#embeddings?.close()]);
  }

  /** @param taskOf called when the index has caught up */
  async #answer(graphId: EntityId, taskOf: () => Task | Promise<Task>): Promise<unknown> {
    for (let attempt = 1; ; attempt++) {
      await this.#catchUps.toEnd(graphId);
      const task = await taskOf();
      try {
        return await this.#withPermit(graphId, () => this.#threadOf(graphId).run(task));
      } catch (error) {
        if (!(error instanceof UnusableIndex)) throw error;
        this.#measures.rebuilt();
        if (attempt === ATTEMPTS) throw unavailable(error);
      }
    }
  }

  async #withPermit<T>(group: string, work: () => Promise<T>): Promise<T> {
    const signal = AbortSignal.timeout(this.#maxWaitMs);
    try {
      return await this.#turns.run(work, { group, signal });
    } catch (error) {
      if (!(error instanceof QueueFull) && error !== signal.reason) throw error;
      throw new Fault('overloaded', 'Too many searches are waiting', { cause: error, retryAfterSeconds: 1 });
    }
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

function unavailable(cause: unknown): Fault {
  return new Fault('store_unavailable', 'The search index is unavailable', { cause, retryAfterSeconds: 2 });
}
