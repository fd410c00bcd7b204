import { Command } from 'commander';

import type { components, RestClient } from '#libs/client/src/index.ts';
import { pause } from '#libs/platform/lifecycle/index.ts';

import { dataOf, withApi } from './api.ts';
import { printOne, type CliParts, type OutputOptions } from './command-context.ts';
import { CliError } from './errors.ts';
import { shortName } from './import/import.model.ts';
import { cell, json, progressBar, type ProgressBar } from './output.ts';

type Crawl = components['schemas']['Crawl'];
type Report = components['schemas']['Report'];

interface CrawlOptions extends OutputOptions {
  readonly graph: string;
  readonly depth: string;
  readonly pages: string;
}

interface ReportOptions extends OutputOptions {
  readonly graph?: string;
}

const POLL_MS = 200;
const HAS_ENDED = /^(Completed|Ready|Cancelled|Failed)/;

export function crawlCommand(parts: CliParts): Command {
  return new Command('crawl')
    .description('Crawl a website into a knowledge graph, and wait until its pages can be searched')
    .argument('<url>', 'page to start from')
    .requiredOption('-g, --graph <name>', 'name or id of the knowledge graph; it is created if there is none')
    .option('--depth <number>', '1: the page alone; 2: the pages it links to, too; at most 3', '2')
    .option('--pages <number>', 'pages to request, at most 300', '50')
    .option('--json', 'print JSON')
    .action((url: string, options: CrawlOptions) => crawl(parts, url, options));
}

export function searchCommand(parts: CliParts): Command {
  return new Command('search')
    .description('Search a knowledge graph')
    .argument('<graph>', 'name or id of the knowledge graph')
    .argument('<words...>', 'what to search for')
    .option('--limit <number>', 'nodes and facts to show, each', '10')
    .option('--json', 'print JSON')
    .action((graph: string, words: string[], options: OutputOptions & { readonly limit: string }) =>
      search(parts, graph, words, options),
    );
}

export function reportCommand(parts: CliParts): Command {
  return new Command('report')
    .description('Write a report on a question from knowledge graphs: Markdown with its sources')
    .argument('<query...>', 'what to research')
    .option('-g, --graph <name>', 'name or id of the knowledge graph; default: the newest graphs')
    .option('--json', 'print JSON')
    .action((words: string[], options: ReportOptions) => report(parts, words.join(' '), options));
}

async function crawl(parts: CliParts, url: string, options: CrawlOptions): Promise<void> {
  const work = async ({ rest }: { readonly rest: RestClient }): Promise<void> => {
    const known = await graphOf(rest, options.graph);
    const graph = known ?? (await newGraph(rest, options.graph));
    const body = {
      url,
      knowledge_graph: graph,
      scan_depth: Number(options.depth),
      max_pages: Number(options.pages),
    };
    const { id } = await dataOf(rest.POST('/api/v1/crawls', { body }), 'there are no crawls').catch(
      async (error: unknown) => {
        // A graph that was created for a crawl that was refused would stay empty.
        if (known === null) await rest.DELETE('/api/v1/knowledge/{id}', { params: { path: { id: graph } } });
        throw error;
      },
    );
    const ended = await untilEnded(parts, rest, id);
    if (ended.status?.startsWith('Completed') !== true) throw new CliError(ended.status ?? 'The crawl has no status');
    const isReady = await untilIngested(parts, rest, ended);
    const { failures, ...stats } = ended.crawl_stats;
    const failed = Object.entries(failures).map(([reason, count]) => `${reason}: ${count}`);
    printOne(parts, options, { id, graph, status: ended.status, ...stats, failures: failed, ...isReady });
  };
  await withApi(parts, work, { server: { command: 'crawl', scopes: ['read', 'write'], otherwise: 'work' } });
}

async function search(
  parts: CliParts,
  name: string,
  words: readonly string[],
  options: OutputOptions & { readonly limit: string },
): Promise<void> {
  await withApi(parts, async ({ rest }) => {
    const missing = `there is no knowledge graph ${name}`;
    const id = await graphOf(rest, name);
    if (id === null) throw new CliError(missing);
    const query = { query: words.join(' '), limit: Number(options.limit) };
    const found = await dataOf(rest.GET('/api/v1/knowledge/{id}/search', { params: { path: { id }, query } }), missing);
    parts.print(options.json === true ? json(found) : searchResults(found));
  });
}

/** Nodes and then facts, each with what it says and where it comes from. */
function searchResults({ nodes, edges }: components['schemas']['KnowledgeSearch']): string {
  // A section is shown once: as a node.
  const facts = edges.filter(({ name }) => name !== 'has section');
  const results = [
    ...nodes.map(({ name, summary, sources }) => [
      line(name),
      line(summary ?? ''),
      line(sources[0]?.url ?? sources[0]?.name ?? ''),
    ]),
    ...facts.map(({ fact, sources }) => [line(fact), line(sources[0]?.url ?? sources[0]?.name ?? '')]),
  ];
  if (results.length === 0) return 'nothing found\n';
  return results
    .map(([first, ...rest]) => `${first}\n${rest.map((text) => text && `  ${text}\n`).join('')}`)
    .join('\n');
}

/** Text as one line of at most 160 characters that does not control the terminal. */
function line(text: string): string {
  return shortName(cell(text), 160);
}

/** @returns the id of the graph with the id or the name, the newest of several; null if there is none */
async function graphOf(rest: RestClient, name: string): Promise<string | null> {
  const list = await dataOf(
    rest.GET('/api/v1/knowledge', { params: { query: { name, size: 1 } } }),
    'there are no graphs',
  );
  const [named] = list.items;
  if (named !== undefined) return named.id;
  if (!/^[\w-]{1,64}$/.test(name)) return null;
  const { data } = await rest.GET('/api/v1/knowledge/{id}', { params: { path: { id: name } } });
  return data?.id ?? null;
}

async function newGraph(rest: RestClient, name: string): Promise<string> {
  return (await dataOf(rest.POST('/api/v1/knowledge', { body: { name } }), 'there are no graphs')).id;
}

async function untilEnded({ terminal }: CliParts, rest: RestClient, id: string): Promise<Crawl> {
  const bar = progressBar(terminal, 'crawling  {bar} {status}', { status: 'Queued' });
  const params = { path: { id } };
  return polled(
    bar,
    () => dataOf(rest.GET('/api/v1/crawls/{id}', { params }), 'the crawl is gone'),
    (crawl) => {
      const { pages, pending } = crawl.crawl_stats;
      const hasEnded = HAS_ENDED.test(crawl.status ?? '');
      const planned = Math.max(1, Math.min(crawl.max_pages, pages + pending));
      bar.update(hasEnded ? 1 : pages / planned, { status: crawl.status });
      return hasEnded;
    },
  );
}

/** Waits until the facts of all documents of the crawl are learnt, or cannot be. */
async function untilIngested({ terminal }: CliParts, rest: RestClient, { crawled_urls }: Crawl) {
  const waiting = [...new Set(crawled_urls.flatMap(({ document_id }) => document_id ?? []))];
  const documents = waiting.length;
  const bar = progressBar(terminal, 'learning  {bar} {settled} of {documents} documents', { settled: 0, documents });
  const counts = { ready: 0, not_learnt: 0 };
  const statusOf = async (id = '') =>
    (await dataOf(rest.GET('/api/v1/documents/{id}', { params: { path: { id } } }), 'a document is gone')).status ?? '';
  await polled(
    bar,
    async () => {
      for (; waiting.length > 0; waiting.pop()) {
        const status = await statusOf(waiting.at(-1));
        if (!HAS_ENDED.test(status)) return;
        counts[status === 'Ready' ? 'ready' : 'not_learnt'] += 1;
        const settled = documents - waiting.length + 1;
        bar.update(settled / documents, { settled, documents });
      }
    },
    () => waiting.length === 0,
  );
  return counts;
}

/** Reads again and again until `isLast`. */
async function polled<T>(bar: ProgressBar, read: () => Promise<T>, isLast: (found: T) => boolean): Promise<T> {
  try {
    for (;;) {
      const found = await read();
      if (isLast(found)) return found;
      await pause(POLL_MS);
    }
  } finally {
    bar.stop();
  }
}

async function report(parts: CliParts, query: string, { graph: name, json: isJson }: ReportOptions): Promise<void> {
  const work = async ({ rest }: { readonly rest: RestClient }): Promise<void> => {
    const graph = name === undefined ? null : await graphOf(rest, name);
    if (name !== undefined && graph === null) throw new CliError(`there is no knowledge graph ${name}`);
    const body = { query, knowledge_graph: graph };
    const { id } = await dataOf(rest.POST('/api/v1/reports', { body }), 'there are no reports');
    const ended = await untilWritten(parts, rest, id);
    if (ended.status !== 'Ready') throw new CliError(ended.status ?? 'The report has no status');
    parts.print(isJson === true ? json(ended) : shown(ended.results));
  };
  await withApi(parts, work, { server: { command: 'report', scopes: ['read', 'write'], otherwise: 'work' } });
}

function untilWritten({ terminal }: CliParts, rest: RestClient, id: string): Promise<Report> {
  const format = 'researching  {bar} {searched} of {questions} questions, {findings} findings';
  const bar = progressBar(terminal, format, { searched: 0, questions: 0, findings: 0 });
  const params = { path: { id } };
  return polled(
    bar,
    () => dataOf(rest.GET('/api/v1/reports/{id}', { params }), 'the report is gone'),
    ({ status, progress }) => {
      const hasEnded = HAS_ENDED.test(status ?? '');
      // Edges are followed after the last question.
      bar.update(hasEnded ? 1 : progress.searched / (progress.questions + 1), progress);
      return hasEnded;
    },
  );
}

/** Documents must not control the terminal. */
function shown(markdown: string): string {
  return markdown.replaceAll(/[^\P{Cc}\n]/gu, '\u{FFFD}');
}
