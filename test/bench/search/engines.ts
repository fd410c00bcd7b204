/** Search engines over the facts of documents: Parley's, and others that index the same nodes. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import MiniSearch from 'minisearch';

import type { FactsLearned } from '#libs/features/knowledge/graph.ts';
import { GraphIndex } from '#libs/features/knowledge/search/graph-index.ts';
import { queryWords } from '#libs/platform/textindex/index.ts';

import type { JudgedQuestion } from './collections.ts';

const EVENTS_OF_WRITE = 50;

export interface Engine {
  /** Ids of the documents that the first results name, in their order, each once. @param limit of results */
  ask(question: string, limit: number): readonly string[];
  close(): void;
}

/** A node as engines without a graph index it. */
interface IndexedNode {
  readonly name: string;
  readonly summary: string;
  readonly passage: string;
  readonly document: string;
}

function* nodesOf(documents: readonly FactsLearned[]): Iterable<IndexedNode> {
  for (const { source, passages, nodes } of documents) {
    for (const { name, summary, passage } of nodes) {
      const text = passage === null ? '' : (passages[passage] ?? '');
      yield { name, summary: summary ?? '', passage: text, document: source?.documentId ?? '' };
    }
  }
}

/** An index of the documents' facts. */
export function indexOf(
  documents: readonly FactsLearned[],
  ...[path, vectors]: ConstructorParameters<typeof GraphIndex>
): GraphIndex {
  const index = new GraphIndex(path, vectors);
  const events = documents.map((data, revision) => {
    const event = { type: 'FactsLearned.v1' as const, data };
    return { revision, id: `event-${revision}`, atMs: revision, event };
  });
  for (let at = 0; at < events.length; at += EVENTS_OF_WRITE) index.write(events.slice(at, at + EVENTS_OF_WRITE));
  return index;
}

/** The documents of the nodes that a search finds, in their order, each once. */
export function documentsOf(
  index: GraphIndex,
  query: string,
  more: { readonly limit: number; readonly vector?: Float32Array | null },
): readonly string[] {
  const nodes = index.search({ query, validAtMs: null, asOf: null, nowMs: Date.now(), ...more })?.nodes ?? [];
  return [...new Set(nodes.map(({ sources }) => sources[0]?.document_id ?? ''))];
}

export function openParley(documents: readonly FactsLearned[]): Engine {
  const folder = mkdtempSync(join(tmpdir(), 'parley-bench-search-'));
  const index = indexOf(documents, join(folder, 'graph.sqlite'));
  return {
    ask: (query, limit) => documentsOf(index, query, { limit }),
    close() {
      index.close();
      rmSync(folder, { recursive: true });
    },
  };
}

export function openMiniSearch(documents: readonly FactsLearned[]): Engine {
  const index = new MiniSearch({
    fields: ['name', 'summary', 'passage'],
    storeFields: ['document'],
    searchOptions: { boost: { name: 4, summary: 2 }, prefix: true, fuzzy: 0.2 },
  });
  let id = 0;
  for (const node of nodesOf(documents)) index.add({ id: id++, ...node });
  return {
    ask(query, limit) {
      const found = index.search(query).slice(0, limit);
      return [...new Set(found.map(({ document }) => String(document)))];
    },
    close: () => undefined,
  };
}

/** SQLite's own full-text search: Porter's stems, any of the words, names weighing more. Stop words are left out, as it knows none. */
export function openFts5(documents: readonly FactsLearned[]): Engine {
  const database = new DatabaseSync(':memory:');
  database.exec(`create virtual table node using fts5(name, summary, passage, document unindexed,
    tokenize = 'porter unicode61 remove_diacritics 2')`);
  const insert = database.prepare('insert into node values (?, ?, ?, ?)');
  database.exec('begin');
  for (const { name, summary, passage, document } of nodesOf(documents)) insert.run(name, summary, passage, document);
  database.exec('commit');
  const select = database.prepare(
    'select document from node where node match ? order by bm25(node, 4.0, 1.0, 1.0) limit ?',
  );
  return {
    ask(query, limit) {
      const words = queryWords(query).map((word) => `"${word}"`);
      if (words.length === 0) return [];
      return [...new Set(select.all(words.join(' OR '), limit).map(({ document }) => String(document)))];
    },
    close: () => database.close(),
  };
}

interface Bm25sOptions {
  /** Path of a Python that has bm25s. */
  readonly python: string;
  readonly questions: readonly JudgedQuestion[];
  readonly limit: number;
}

/** bm25s, which ranks all questions at once, in a process of Python. */
export function openBm25s(documents: readonly FactsLearned[], { python, questions, limit }: Bm25sOptions): Engine {
  const nodes = [...nodesOf(documents)];
  const texts = nodes.map(({ name, summary, passage }) => `${name}\n${summary}\n${passage}`);
  const output = execFileSync(python, [join(import.meta.dirname, '../sides/bm25s_rank.py')], {
    input: JSON.stringify({ texts, questions: questions.map(({ question }) => question), limit }),
    maxBuffer: 1e9,
  });
  const ranked = JSON.parse(output.toString()) as number[][];
  const answers = new Map(questions.map(({ question }, at) => [question, ranked[at] ?? []]));
  return {
    ask: (question) => [...new Set((answers.get(question) ?? []).map((at) => nodes[at]?.document ?? ''))],
    close: () => undefined,
  };
}
