/** A crawl of real pages on loopback, until search has their facts, against fetching the same pages. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { createApiKey } from '#libs/platform/http/index.ts';

import type { Benchmark, Row, Sample } from './benchmark.ts';
import { askOnce, cpuSecondsOf, startChild, startParley } from './child-process.ts';

export interface SiteTask {
  readonly folder: string;
  readonly pages: number;
  /** Before each response. */
  readonly delayMs: number;
}

export interface SiteAnswer {
  readonly port: number;
  /** Of all pages, the start page first. */
  readonly paths: readonly string[];
}

export interface FetchTask {
  readonly origin: string;
  readonly paths: readonly string[];
  readonly atOnce: number;
}

/** Folder with the pages of a site: see docs/performance.md. */
const FOLDER = process.env['PARLEY_BENCH_SITE'] ?? '/usr/share/doc/postgresql-doc-15/html';
/** With the start page and three lists of links: a crawl reads at most 300. */
const PAGES = 296;
const AT_ONCE = 4;
const TITLE = `crawl and ingestion of 300 pages; fetching them, ${AT_ONCE} at once`;

/** None without pages. */
export const crawlBenchmarks: readonly Benchmark[] = existsSync(FOLDER)
  ? [
      // A fetch from loopback takes a quarter of a millisecond: no goal.
      crawlBenchmark('crawl', 0, { title: TITLE }),
      crawlBenchmark('crawl-20ms', 20, { title: `${TITLE}; each page takes 20 ms`, goal: { atLeast: 0.6 } }),
    ]
  : [];

function crawlBenchmark(name: string, delayMs: number, row: Pick<Row, 'title' | 'goal'>): Benchmark {
  return {
    name,
    rows: [{ ...row, ours: 'parley', theirs: 'fetch', figure: 'rate', unit: 'pages/s' }],
    async prepare() {
      const server = startChild('sides/site-server.process.ts');
      const { port, paths } = await server.ask<SiteAnswer>({ folder: FOLDER, pages: PAGES, delayMs });
      const origin = `http://127.0.0.1:${port}`;
      return {
        sides: {
          parley: () => crawl(origin, paths.length),
          async fetch() {
            const task: FetchTask = { origin, paths, atOnce: AT_ONCE };
            const { rate, cpuMicros } = await askOnce<{ rate: number; cpuMicros: number }>(
              'sides/bare-fetch.process.ts',
              task,
            );
            return { figures: { rate, cpuMicros } };
          },
        },
        cleanUp: () => server.stop(),
      };
    },
  };
}

async function crawl(origin: string, pages: number): Promise<Sample> {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-bench-crawl-'));
  const apiKey = createApiKey();
  const parley = await startParley(dataDir, apiKey, { env: { FETCH_ALLOW_HOSTS: new URL(origin).host } });
  try {
    const api = new Api(parley.url, apiKey);
    // As the baseline, which has fetched all of them before.
    await api.crawl(`${origin}/`, pages);
    const cpuBefore = await cpuSecondsOf(parley.pid);
    const started = performance.now();
    await api.crawl(`${origin}/`, pages);
    const rate = (pages * 1_000) / (performance.now() - started);
    const cpuMicros = (((await cpuSecondsOf(parley.pid)) - cpuBefore) * 1_000_000) / pages;
    return { figures: { rate, cpuMicros } };
  } finally {
    await parley.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
}

interface Found {
  readonly id: string;
  readonly status: string;
  readonly document_count: number;
  readonly crawl_stats: { readonly pages: number; readonly documents: number };
}

class Api {
  readonly #url: URL;
  readonly #headers: Record<string, string>;

  constructor(url: URL, apiKey: string) {
    this.#url = url;
    this.#headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  }

  /** Resolves when the facts of all pages are in a new graph. */
  async crawl(url: string, pages: number): Promise<void> {
    const graph = await this.#ask('/api/v1/knowledge', { name: 'site' });
    const body = { url, knowledge_graph: graph.id, scan_depth: 3, max_pages: pages };
    const crawl = await this.#ask('/api/v1/crawls', body);
    const { crawl_stats: read } = await this.#until(`/api/v1/crawls/${crawl.id}`, ({ status }) => {
      if (status.startsWith('Failed')) throw new Error(status);
      return status === 'Completed';
    });
    if (read.pages !== pages) throw new Error(`${read.pages} pages were read instead of ${pages}`);
    // Pages with the same content are one document.
    const documents = read.documents;
    await this.#until(`/api/v1/knowledge/${graph.id}`, ({ document_count }) => document_count === documents);
  }

  async #until(path: string, isDone: (found: Found) => boolean): Promise<Found> {
    for (;;) {
      const found = await this.#ask(path);
      if (isDone(found)) return found;
      await pause(50);
    }
  }

  async #ask(path: string, body?: object): Promise<Found> {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const response = await fetch(new URL(path, this.#url), { headers: this.#headers, ...init });
    if (!response.ok) throw new Error(`${response.status} for ${path}: ${await response.text()}`);
    return (await response.json()) as Found;
  }
}
