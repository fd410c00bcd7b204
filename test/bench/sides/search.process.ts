/** One engine on the pages of a documentation site: answers questions about it, and measures how long that takes. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import MiniSearch from 'minisearch';

import { extractFacts } from '#libs/features/documents/extract/facts.ts';
import { readPage } from '#libs/features/documents/extract/page.ts';
import type { FactsLearned } from '#libs/features/knowledge/graph.ts';
import { OneGraphIndex } from '#libs/features/knowledge/search/one-graph-index.ts';
import { derivedId } from '#libs/kernel/ids.ts';

import { answerTasks } from '../child-process.ts';
import type { SearchAnswer, SearchTask } from '../search.benchmark.ts';
import { percentile } from '../statistics.ts';
import site from '../search/questions.json' with { type: 'json' };

/** The glossary, which questions were made from, and lists of all pages. */
const LEFT_OUT = new Set(['glossary.html', 'bookindex.html', 'index.html']);
const RESULTS = 10;
const ROUNDS = 5;
/** A slow engine answers fewer rounds, but the questions at least once after the round that does not count. */
const MAX_DURATIONS_MS = 20_000;
const EVENTS_OF_WRITE = 50;
const NAMESPACE = '2d0f7c3a-7b0e-4a57-9d0c-0d8f3b6e5a11';

/** Gives the pages of the first results. */
type Ask = (question: string) => readonly string[];

answerTasks<SearchTask, SearchAnswer>(async ({ engine, sizes, isJudged }) => {
  const pages = readSite();
  const open = engine === 'parley' ? openParley : openMiniSearch;
  const figures: Record<string, number> = {};
  if (isJudged) {
    const whole = open(pages);
    Object.assign(figures, relevanceOf(whole.ask));
    whole.close();
  }
  for (const size of sizes) {
    const sized = open(ofSize(pages, size));
    const durations = durationsOf(sized.ask);
    figures[`p50 at ${size}`] = percentile(durations, 0.5);
    figures[`p99 at ${size}`] = percentile(durations, 0.99);
    sized.close();
  }
  return figures;
});

function readSite(): FactsLearned[] {
  const files = readdirSync(site.folder).filter((file) => file.endsWith('.html') && !LEFT_OUT.has(file));
  return files.map((file) => {
    const url = `http://docs.example/${file}`;
    const page = readPage(readFileSync(join(site.folder, file)), { url, contentType: 'text/html' });
    const name = page.title ?? file;
    const { text, structured } = page;
    const facts = extractFacts({ documentId: file, name, url, contentType: 'text/markdown', text, structured });
    const nodes = facts.nodes.map(({ key, ...node }) => ({
      ...node,
      labels: [...node.labels],
      id: derivedId(NAMESPACE, key),
    }));
    const source = { documentId: file, revision: 0, name, url };
    return { source, passages: [...facts.passages], nodes, edges: [], model: null };
  });
}

/** Repeats the pages, as other documents with the same text, up to a number of nodes. */
function ofSize(pages: readonly FactsLearned[], size: number): FactsLearned[] {
  const sized: FactsLearned[] = [];
  for (let count = 0, copy = 0; count < size; copy++) {
    for (const page of pages) {
      const nodes = page.nodes
        .slice(0, size - count)
        .map((node) => ({ ...node, id: derivedId(NAMESPACE, `${copy} ${node.id}`) }));
      const source = page.source && { ...page.source, documentId: `${copy}/${page.source.documentId}` };
      if (nodes.length > 0) sized.push({ ...page, source, nodes });
      count += nodes.length;
    }
  }
  return sized;
}

function openParley(pages: readonly FactsLearned[]) {
  const folder = mkdtempSync(join(tmpdir(), 'parley-bench-search-'));
  const index = new OneGraphIndex(join(folder, 'graph.sqlite'));
  const events = pages.map((data, revision) => {
    const event = { type: 'FactsLearned.v1' as const, data };
    return { revision, id: `event-${revision}`, atMs: revision, event };
  });
  for (let at = 0; at < events.length; at += EVENTS_OF_WRITE) index.write(events.slice(at, at + EVENTS_OF_WRITE));
  const ask: Ask = (query) => {
    const question = { query, limit: RESULTS, validAtMs: null, asOf: null, nowMs: Date.now() };
    return index.search(question)?.nodes.map(({ sources }) => sources[0]?.document_id ?? '') ?? [];
  };
  return {
    ask,
    close(): void {
      index.close();
      rmSync(folder, { recursive: true });
    },
  };
}

function openMiniSearch(pages: readonly FactsLearned[]) {
  const index = new MiniSearch({
    fields: ['name', 'summary', 'passage'],
    storeFields: ['page'],
    searchOptions: { boost: { name: 4, summary: 2 }, prefix: true, fuzzy: 0.2 },
  });
  let id = 0;
  for (const { source, passages, nodes } of pages) {
    for (const { name, summary, passage } of nodes) {
      const text = passage === null ? '' : passages[passage];
      index.add({ id: id++, name, summary: summary ?? '', passage: text, page: source?.documentId });
    }
  }
  const ask: Ask = (query) =>
    index
      .search(query)
      .slice(0, RESULTS)
      .map(({ page }) => String(page));
  return { ask, close: (): void => undefined };
}

/** Recall: the part of the questions with a right page among the results. */
function relevanceOf(ask: Ask): SearchAnswer {
  const ranks = site.questions.map(
    ({ question, pages }) => ask(question).findIndex((page) => pages.includes(page)) + 1,
  );
  const found = ranks.filter((rank) => rank > 0);
  return {
    'recall at 10': found.length / ranks.length,
    'reciprocal rank': found.reduce((sum, rank) => sum + 1 / rank, 0) / ranks.length,
  };
}

/** In milliseconds, after a round that does not count. */
function durationsOf(ask: Ask): number[] {
  const durations: number[] = [];
  const endMs = performance.now() + MAX_DURATIONS_MS;
  for (let round = 0; round <= ROUNDS && (round < 2 || performance.now() < endMs); round++) {
    for (const { question } of site.questions) {
      const startedMs = performance.now();
      ask(question);
      if (round > 0) durations.push(performance.now() - startedMs);
    }
  }
  return durations;
}
