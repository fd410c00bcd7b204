import { setImmediate } from 'node:timers/promises';

import type { Knowledge } from '#libs/features/knowledge/index.ts';
import { fetcherWith } from '#libs/platform/fetch/index.ts';
import { type Process, reactor } from '#libs/platform/reactors/index.ts';
import type { StoreClock } from '#libs/platform/eventstore/index.ts';

import {
  afterPages,
  allDocuments,
  type Crawl,
  type CrawlEvent,
  type CrawlState,
  hasEnded,
  removableDocuments,
} from './crawl.ts';
import { crawlEntity, failureOfPage } from './crawl.read.ts';
import type { StepPart } from './decided-pages.ts';
import { BUDGET, endOf, requestsLeft, siteOf } from './frontier.ts';
import { allows } from './robots.ts';
import { PageVisits, type ScanTools } from './scan.ts';
import { readSitemaps } from './site-rules.ts';

export interface CrawlTools extends ScanTools {
  readonly knowledge: Pick<Knowledge, 'graph' | 'prepareSearch'>;
  readonly clock: Pick<StoreClock, 'nowMs'>;
}

/** Limits of a step. */
const STEP = { urls: 500, timeMs: 10_000 } as const;

/** Of a page, and of what a site says about itself. */
const LEAST_BYTES_PER_SECOND = 512;

/** Characters. */
const MAX_RULES_WITH_PAGES = 64 * 1024;

/** Runs crawls: each step visits the next pages in the order of their discovery, and records them part by part. */
export function crawlReactor(tools: CrawlTools) {
  return reactor<CrawlState, CrawlEvent>({
    name: 'crawls',
    on: ['CrawlRequested.v1', 'RescanRequested.v1', 'PagesCrawled.v1'],
    process: crawlEntity.projection,
    startRevision: (crawl) => crawl?.requestedRevision ?? null,
    isEnded: (crawl) => crawl !== null && hasEnded(crawl),
    handle(_event, process) {
      const { state: crawl, organizationId: group } = process;
      if (crawl === null) return [];
      const own = {
        ...tools,
        fetcher: fetcherWith(tools.fetcher, { group, leastBytesPerSecond: LEAST_BYTES_PER_SECOND }),
      };
      return crawl.phase === 'queued' ? start(own, crawl, process) : advance(own, crawl, process);
    },
    giveUp(crawl, { reason, lastError }) {
      if (crawl === null) return [];
      const why = reason === 'deadline' ? 'the crawl took too long' : `a step failed repeatedly: ${lastError}`;
      return [{ type: 'CrawlFailed.v1', data: { scan: crawl.scan, reason: why, removed: [] } }];
    },
    limits: { concurrency: 12, perOrganization: 4, stepTimeoutMs: 150_000, deadlineMs: BUDGET.timeMs + 20 * 60_000 },
  });
}

/** Visits the start page, which says where the site is. */
async function start(
  tools: CrawlTools,
  crawl: Crawl,
  process: Process<CrawlState, CrawlEvent>,
): Promise<readonly CrawlEvent[]> {
  const { scan, url } = crawl;
  const visits = new PageVisits(crawl, process, tools);
  if (await isWithoutGraph(tools, crawl, process)) {
    const end = endWithoutGraph(crawl);
    await visits.remove(end.data.removed);
    return [end];
  }
  const robots = await visits.robotsOf(url);
  const refusal = robots.problem ?? (allows(robots, url) ? null : `robots.txt does not allow ${url}`);
  if (refusal !== null) {
    const failed: CrawlEvent = { type: 'CrawlFailed.v1', data: { scan, reason: refusal, removed: [] } };
    return [...(await robotsEvents(crawl, process, visits)), failed];
  }
  if ((await visits.begin({ url, depth: 1 }, STEP.timeMs)) === null) return [];
  await visits.end();
  const site = siteOf(visits.finalUrl);
  if (crawl.scanDepth > 1 && visits.pages.waiting[0]?.documentId !== null) {
    const { signal } = process;
    visits.discovery.add(await readSitemaps(tools.fetcher, visits.sitemaps, { site, signal, limit: 3_000 }), 1);
  }
  const events = await eventsOfStep(tools, { ...crawl, site }, process, visits);
  return [{ type: 'CrawlStarted.v1', data: { scan, site } }, ...events];
}

async function isWithoutGraph(
  { knowledge }: CrawlTools,
  { knowledgeGraph }: Crawl,
  { organizationId }: Process<CrawlState, CrawlEvent>,
): Promise<boolean> {
  return knowledgeGraph !== null && (await knowledge.graph(organizationId, knowledgeGraph)) === null;
}

async function advance(
  tools: CrawlTools,
  crawl: Crawl,
  process: Process<CrawlState, CrawlEvent>,
): Promise<readonly CrawlEvent[]> {
  const visits = new PageVisits(crawl, process, tools);
  if (endOf(crawl, elapsedMs(tools, crawl)) !== null) return eventsOfStep(tools, crawl, process, visits);
  const until = performance.now() + STEP.timeMs;
  const most = requestsLeft(crawl);
  let recorded = crawl;
  let requested = 0;
  for (const entry of crawl.pending.slice(0, STEP.urls)) {
    const leftMs = until - performance.now();
    if (requested >= most || leftMs <= 0 || visits.isFull) break;
    const part = await visits.pages.takePart();
    if (part !== null) recorded = await recordPart(tools, recorded, part, process);
    const isRequested = await visits.begin(entry, leftMs);
    if (isRequested === null) break;
    if (isRequested) requested += 1;
    // Rules of half a MiB take milliseconds for each URL.
    else await setImmediate();
  }
  await visits.end();
  prepareSearch(tools, crawl);
  // Other crawls use all slots of the site: the step is tried again.
  return visits.pages.count === 0 ? [] : eventsOfStep(tools, recorded, process, visits);
}

/** Records pages while the step continues. @returns the crawl with them */
async function recordPart(
  tools: CrawlTools,
  crawl: Crawl,
  part: StepPart,
  process: Process<CrawlState, CrawlEvent>,
): Promise<Crawl> {
  prepareSearch(tools, crawl);
  const event: CrawlEvent = { type: 'PagesVisited.v1', data: { scan: crawl.scan, ...part, website: null } };
  return (await process.recordIntent(event)) ?? crawl;
}

/** Facts of many pages were learnt: the index takes them in while the next pages are visited. */
function prepareSearch({ knowledge }: CrawlTools, { knowledgeGraph }: Crawl): void {
  if (knowledgeGraph !== null) knowledge.prepareSearch(knowledgeGraph);
}

function elapsedMs({ clock }: CrawlTools, { requestedAt }: Crawl): number {
  return (clock.nowMs ?? Date.now()) - Date.parse(requestedAt);
}

/**
 * Events for the robots.txt files that were read. Large rules are recorded at once: with the pages, they do not fit
 * into one append.
 */
async function robotsEvents(
  { scan }: Crawl,
  process: Process<CrawlState, CrawlEvent>,
  { newRobots }: PageVisits,
): Promise<CrawlEvent[]> {
  const events = newRobots.map((robots): CrawlEvent => ({ type: 'RobotsRead.v1', data: { scan, ...robots } }));
  if (JSON.stringify(events).length <= MAX_RULES_WITH_PAGES) return events;
  for (const event of events) await process.recordIntent(event);
  return [];
}

/** The events of a step, with the end of the scan if there is nothing left to visit. */
async function eventsOfStep(
  tools: CrawlTools,
  crawl: Crawl,
  process: Process<CrawlState, CrawlEvent>,
  visits: PageVisits,
): Promise<CrawlEvent[]> {
  // 1. What was read.
  const read = visits.pages.take();
  const events = await robotsEvents(crawl, process, visits);
  if (visits.pages.count > 0) {
    events.push({ type: 'PagesCrawled.v1', data: { scan: crawl.scan, ...read, website: visits.website } });
  }
  // 2. The end, if there is one. The graph is looked up last: documents of this step may have come after its deletion.
  const after: Crawl = { ...crawl, ...afterPages(crawl, read) };
  const end = (await isWithoutGraph(tools, crawl, process)) ? endWithoutGraph(after) : endOfScan(tools, after);
  if (end === null) return events;
  // 3. Documents are removed before the end says so: a step that fails here is repeated.
  await visits.remove(end.data.removed);
  return [...events, end];
}

type End = Extract<CrawlEvent, { type: 'CrawlCompleted.v1' | 'CrawlFailed.v1' }>;

/** The documents of a graph are deleted with it; those that the crawl has written meanwhile are removed with this end. */
function endWithoutGraph(crawl: Crawl): End {
  const reason = 'the knowledge graph was deleted';
  return { type: 'CrawlFailed.v1', data: { scan: crawl.scan, reason, removed: allDocuments(crawl) } };
}

function endOfScan(tools: CrawlTools, crawl: Crawl): End | null {
  const endedBy = endOf(crawl, elapsedMs(tools, crawl));
  if (endedBy === null) return null;
  const { scan, pages } = crawl;
  const hasRead = pages.some(({ documentId, outcome }) => documentId !== null && outcome !== 'failed');
  const isWhole = hasRead && (endedBy === 'all_pages' || endedBy === 'max_pages');
  const removed = removableDocuments(crawl, isWhole);
  const [first] = pages;
  if (hasRead || first === undefined) return { type: 'CrawlCompleted.v1', data: { scan, endedBy, removed } };
  return { type: 'CrawlFailed.v1', data: { scan, reason: failureOfPage(first), removed } };
}
