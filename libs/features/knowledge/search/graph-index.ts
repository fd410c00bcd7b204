import { streamRevision } from '#libs/kernel/event.ts';
import {
  IndexFile,
  queryWordCounts,
  variantsOf,
  IndexCache,
  type IndexCacheOptions,
} from '#libs/platform/textindex/index.ts';
import { Columns, EDGE, NODE, type Point } from './columns.ts';
import {
  type FactIds,
  type FoundEdge,
  type FoundNode,
  type GraphCounts,
  MAX_LIMIT,
  type PastGraph,
  type PlannedPoint,
  type PlannedQuestion,
  type SearchResult,
} from './graph-questions.ts';
import { fused } from './top-items.ts';
import { GraphVectors, type MissingVector, type VectorsOptions } from './graph-vectors.ts';
import { type IndexedEvent, writeEvents } from './event-writer.ts';
import { Ranker, type Rankings } from './ranking.ts';
import { descriptionAt, isoTime, readById, readEdge, readNode } from './records.ts';

/**
 * The index of one graph: a fold of its events, in a file that other processes may read and write at the same time.
 * Every answer is of one state of the file. Errors of all methods: those of SQLite.
 */
export class GraphIndex {
  readonly #file: IndexFile;
  readonly #columns = new Columns();
  readonly #vectors: GraphVectors | null;
  readonly #minSimilarity: number;

  /** @param vectors path of their file; null: words alone are compared */
  constructor(path: string, vectors: (Omit<VectorsOptions, 'key'> & { readonly path: string }) | null = null) {
    this.#file = openGraphFile(path);
    this.#vectors = vectors && new GraphVectors(vectors.path, vectors.maxBytes);
    this.#minSimilarity = vectors?.minSimilarity ?? 0;
  }

  /** Memory, with that for pages of the files. */
  get bytes(): number {
    return this.#columns.bytes + this.#file.cacheBytes + (this.#vectors?.bytes ?? 0);
  }

  close(): void {
    this.#file.close();
    this.#vectors?.close();
  }

  /** Of the last event in the index; -1 for none. */
  progress(): { readonly revision: number; readonly event: string } {
    return this.#read(({ revision, event }) => ({ revision, event }));
  }

  /** Does nothing for events that are in the index already. @param events of consecutive revisions */
  write(events: readonly IndexedEvent[]): void {
    writeEvents(this.#file, events);
  }

  /** Null where the point is before the first event. */
  search(question: PlannedQuestion): SearchResult | null {
    const { limit, validAtMs, asOf, nowMs } = question;
    return this.#read((columns) => {
      const revision = asOf === null ? columns.revision : revisionOf(columns, asOf);
      if (revision < 0) return null;
      const timeMs = validAtMs ?? (asOf === null ? nowMs : 'atMs' in asOf ? asOf.atMs : columns.timeOf(revision));
      const point = { revision, timeMs };
      const { ranking, found } = this.#ranked(question, point, Math.min(limit, MAX_LIMIT));
      const [nodes, edges] = found;
      const index = { file: this.#file, columns, point };
      return {
        ranking,
        total_nodes: nodes.total,
        total_edges: edges.total,
        nodes: present(nodes.best.map(({ item, row }) => readNode(index, item, row))),
        edges: present(edges.best.map(({ item, row }) => readEdge(index, item, row))),
      };
    });
  }

  /** Null where the point is before the first event. */
  past(point: PlannedPoint): PastGraph | null {
    return this.#read((columns) => {
      const revision = revisionOf(columns, point);
      if (revision < 0) return null;
      const modified = isoTime(columns.timeOf(revision));
      return { revision: streamRevision(revision), modified, ...descriptionAt(this.#file, revision) };
    });
  }

  #ranked({ query, vector = null }: PlannedQuestion, point: Point, limit: number): RankedAnswer {
    const columns = this.#columns;
    const index = { file: this.#file, columns };
    const ranker = (most: number) => new Ranker(this.#file, columns, { point, limit: most });
    if (isOpen(query)) return { ranking: 'newest', found: ranker(limit).newest() };
    const words = this.#variants(query, point);
    const minSimilarity = this.#minSimilarity;
    const nearest = vector === null ? null : (this.#vectors?.nearest(index, point, { vector, minSimilarity }) ?? null);
    if (nearest === null) return { ranking: 'words', found: ranker(limit).matching({ words, query }) };
    const [nodes, edges] = ranker(MAX_LIMIT).matching({ words, query, nearest });
    const found = [
      fused(nodes, nearest[NODE], { limit, columns }),
      fused(edges, nearest[EDGE], { limit, columns }),
    ] as const;
    return { ranking: 'words_and_vectors', found };
  }

  /** Texts of facts without a vector; none where vectors are not used. Errors: also those of their file. */
  missingVectors(limit: number): readonly MissingVector[] {
    return this.#read((columns) => this.#vectors?.missing({ file: this.#file, columns }, limit) ?? []);
  }

  /** As {@link missingVectors}. @param vectors null for texts that the endpoint refuses */
  addVectors(vectors: readonly (readonly [key: string, vector: Float32Array | null])[]): void {
    this.#read((columns) => this.#vectors?.add({ file: this.#file, columns }, vectors));
  }

  /** Facts that are present at a revision, or at the end of the index if that is earlier. */
  counts(atRevision: number): GraphCounts {
    return this.#read((columns) => {
      const revision = Math.min(atRevision, columns.revision);
      const items = new Uint8Array(columns.items);
      const documents = new Set<number>();
      const counts = [0, 0];
      for (let row = columns.lastRowAt(revision); row >= 0; row--) {
        if (!columns.isPresent(row, revision)) continue;
        const item = columns.item[row] ?? 0;
        documents.add(columns.document[row] ?? -1);
        if (items[item] === 0) counts[columns.kind[item] ?? 0]! += 1;
        items[item] = 1;
      }
      documents.delete(-1);
      return { nodes: counts[NODE] ?? 0, edges: counts[EDGE] ?? 0, documents: documents.size };
    });
  }

  /** The facts that are present, in the order of the ids. */
  facts({ nodes, edges }: FactIds): { readonly nodes: readonly FoundNode[]; readonly edges: readonly FoundEdge[] } {
    return this.#read((columns) => {
      const index = { file: this.#file, columns, point: { revision: columns.revision, timeMs: Infinity } };
      const found = (ids: readonly string[]) => present(ids.map((id) => readById(index, id)));
      return {
        nodes: found(nodes).filter((one): one is FoundNode => !('fact' in one)),
        edges: found(edges).filter((one): one is FoundEdge => 'fact' in one),
      };
    });
  }

  #variants(query: string, { revision }: Point) {
    const lastRow = this.#columns.lastRowAt(revision);
    return [...queryWordCounts(query)]
      .map(([word, count]) => ({ count, variants: variantsOf(this.#file, word, lastRow) }))
      .filter(({ variants }) => variants.length > 0);
  }

  #read<T>(work: (columns: Columns) => T): T {
    return this.#file.read(() => {
      this.#columns.refresh(this.#file);
      return work(this.#columns);
    });
  }
}

interface RankedAnswer {
  readonly ranking: SearchResult['ranking'];
  readonly found: Rankings;
}

function isOpen(query: string): boolean {
  const text = query.length < 100 ? query.trim() : query;
  return text === '' || text === '*';
}

function revisionOf(columns: Columns, asOf: PlannedPoint): number {
  return 'atMs' in asOf ? columns.revisionAt(asOf.atMs) : Math.min(asOf.sequence - 1, columns.revision);
}

function present<T>(values: readonly (T | null)[]): T[] {
  return values.filter((value): value is T => value !== null);
}

/** Of the tables, of the words that texts consist of, and of how events become rows. */
const VERSION = 6;

/*
 * - `fact`: each time that a source stated a node or an edge, in the order of the stream. Rows are never removed: a fact
 *   is visible at revisions from `learnt` to the one before `withdrawn`. `text` is the key of what it is embedded
 *   by, `named` that of a node's name.
 * - `item`: the nodes (kind 0) and edges (kind 1). `slot` names the source node and relation of a single-valued edge,
 *   `start` is its place among the edges of the slot.
 * - `ending`: from `revision` on, the edge is known to be true until `at` (null: without an end).
 * - `described`: what the graph is called from `revision` on.
 * Times are in Unix milliseconds.
 */
const TABLES = `
  create table progress (revision integer not null, event text not null);
  insert into progress values (-1, '');
  create table event (revision integer primary key, at real not null);
  create table described (revision integer primary key, name text not null, description text);
  create table item (
    item integer primary key, uuid text not null unique, kind integer not null, learnt integer not null,
    valid_at real, ended real, slot text, target text, start real
  );
  create index item_slot on item (slot, start, item) where slot is not null;
  create table document (document integer primary key, id text not null unique, withdrawn_before integer not null);
  create table origin (origin integer primary key, document integer not null, revision integer not null, name text not null, url text);
  create table passage (passage integer primary key, text text not null);
  create table fact (
    row integer primary key, item integer not null, document integer, origin integer, passage integer,
    learnt integer not null, withdrawn integer, name_words integer not null, words integer not null, invalid_at real, text blob not null,
    named integer
  );
  create index fact_item on fact (item);
  create index fact_named on fact (named) where named is not null;
  create index fact_stated on fact (item, document) where withdrawn is null;
  create index fact_end on fact (item, invalid_at) where withdrawn is null and invalid_at is not null;
  create index fact_document on fact (document) where withdrawn is null;
  create index fact_withdrawn on fact (withdrawn) where withdrawn is not null;
  create table content (row integer primary key, json text not null);
  create table ending (item integer not null, revision integer not null, at real, primary key (item, revision)) without rowid;
  create index ending_revision on ending (revision);
`;

/** The file of one graph's index, which follows from the graph's stream alone. Errors: those of SQLite. */
function openGraphFile(path: string): IndexFile {
  return new IndexFile(path, { version: VERSION, tables: TABLES });
}

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
