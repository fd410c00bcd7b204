/*
 * Workers are killed in a loop while crawls run: each crawl ends once, with each page, document and fact once. Then they
 * are killed while reports on these pages are written. CRAWLS_ROUNDS sets how often, CRAWLS and CRAWLS_REPORTS how many
 * there are: `npm run test:crawls`.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';

import { crawlProblems, isEnd } from '#test/support/crawl-checker.ts';
import { DocumentsApi } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';
import { type LogEvent, readLog } from '#test/support/log-reader.ts';
import { type ParleyProcess, startParleyProcess } from '#test/support/parley-process.ts';
import { html, type PageOfSite, startWebsite, type Website } from '#test/support/website.ts';

const ROUNDS = Number(process.env['CRAWLS_ROUNDS'] ?? 2);
const CRAWLS = Number(process.env['CRAWLS'] ?? 8);
/** Requested in each round. */
const REPORTS = Number(process.env['CRAWLS_REPORTS'] ?? 4);
/** Pages link to those with 2n, 2n + 1 and 5n. */
const PAGES = 60;
/** Of them, with a depth of 3: 1; 2, 3, 5; 4, 6, 7, 10, 11, 15, 25. */
const REACHED = 11;
const TIMEOUT_MS = 240_000 + ROUNDS * 30_000;

let site: Website;
let api: DocumentsApi;
let graphs: string[];
const workers: ParleyProcess[] = [];

beforeAll(async () => {
  site = await startWebsite();
  for (let n = 1; n <= PAGES; n += 1) {
    const links = [2 * n, 2 * n + 1, 5 * n].filter((to) => to <= PAGES).map((to) => `/${to}`);
    const body = html(`Page ${n}`, { links, text: `Words of the page with the number ${n}.` });
    // Slow enough to be killed meanwhile.
    const answer: PageOfSite['answer'] = (_request, response) => {
      setTimeout(() => response.writeHead(200, { 'content-type': 'text/html' }).end(body), 50);
    };
    site.pages.set(n === 1 ? '/' : `/${n}`, { answer });
  }
  api = await DocumentsApi.start({ hasWorker: false, fetch: { allowHosts: [{ host: '127.0.0.1', port: site.port }] } });
  const { eventStore, redis } = api.api.stores;
  const options = { role: 'worker', eventstoreUrl: eventStore.url, redisUrl: redis.url, wait: false } as const;
  const env = { FETCH_ALLOW_HOSTS: `127.0.0.1:${site.port}` };
  workers.push(...(await Promise.all([1, 2].map(() => startParleyProcess({ ...options, env })))));
}, 120_000);

afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.stop()));
  await api?.stop();
  await site?.stop();
});

const log = async () =>
  (
    await Promise.all(['crawl-', 'document-', 'graph-'].map((one) => readLog(api.api.stores.eventStore.url, one)))
  ).flat();

async function replaceWorker(round: number): Promise<void> {
  const victim = workers[round % workers.length]!;
  await victim.kill9();
  await victim.start({ wait: false });
}

it(
  'each crawl ends once, with each page, document and fact once, however often workers are killed',
  async () => {
    graphs = [await api.newGraph(), await api.newGraph()];
    for (let n = 0; n < CRAWLS; n += 1) {
      const body = { url: `${site.origin}/`, scan_depth: 3, max_pages: 15, knowledge_graph: graphs[n % graphs.length] };
      expect((await api.call('POST', '/api/v1/crawls', body)).status).toBe(200);
    }
    const recorded = async () => (await log()).filter(({ type }) => type === 'PagesCrawled.v1').length;
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = await recorded();
      // Each round begins with progress, unless all crawls have ended.
      await eventually(async () => (await recorded()) > before || (await log()).filter(isEnd).length === CRAWLS, {
        timeoutMs: 120_000,
        everyMs: 50,
      });
      await replaceWorker(round);
    }
    await eventually(
      async () => {
        expect((await log()).filter(isEnd)).toHaveLength(CRAWLS);
        for (const graph of graphs) {
          const { json } = await api.call('GET', `/api/v1/documents?knowledge_graph=${graph}&status=Ready&size=1`);
          expect(json.meta.total).toBe((CRAWLS / graphs.length) * REACHED);
        }
      },
      { timeoutMs: 180_000, everyMs: 500 },
    );
    const events = await log();
    expect(crawlProblems(events)).toEqual([]);

    // The checker finds what is planted.
    const page = events.find(({ type }) => type === 'PagesCrawled.v1')!;
    const end = events.find(isEnd)!;
    const fact = events.find(({ type }) => type === 'FactsLearned.v1')!;
    for (const planted of [page, end, fact]) expect(crawlProblems([...events, planted])).not.toEqual([]);
  },
  TIMEOUT_MS,
);

it(
  'each report ends once, with the same text, however often workers are killed',
  async () => {
    const reports = () => readLog(api.api.stores.eventStore.url, 'report-');
    const body = { query: 'Page 7: its words, its number', knowledge_graph: graphs[0] };
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = (await reports()).filter(isStep).length;
      for (let n = 0; n < REPORTS; n += 1) {
        expect((await api.call('POST', '/api/v1/reports', body)).status).toBe(200);
      }
      await eventually(async () => (await reports()).filter(isStep).length > before, {
        timeoutMs: 120_000,
        everyMs: 50,
      });
      await replaceWorker(round);
    }
    const requested = REPORTS * ROUNDS;
    await eventually(async () => expect((await reports()).filter(isWritten)).toHaveLength(requested), {
      timeoutMs: 180_000,
      everyMs: 500,
    });
    const events = await reports();
    expect(new Set(events.filter(isWritten).map(({ data }) => data['results'])).size).toBe(1);
    // The same steps in the same order: none twice, and nothing after the end.
    const streams = Map.groupBy(events, ({ stream }) => stream);
    const courses = [...streams.values()].map((own) => own.map(({ type }) => type).join(' '));
    expect(new Set(courses).size).toBe(1);
    expect(courses).toHaveLength(requested);
    expect(courses[0]).toMatch(
      /^ReportRequested.v1 ResearchPlanned.v1 (GraphSearched.v1 )+(EdgesFollowed.v1 )*ReportWritten.v2$/,
    );
  },
  TIMEOUT_MS,
);

const isStep = ({ type }: LogEvent): boolean => type === 'ResearchPlanned.v1' || type === 'GraphSearched.v1';
const isWritten = ({ type }: LogEvent): boolean => type === 'ReportWritten.v2';
