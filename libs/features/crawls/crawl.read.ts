import { createHash } from 'node:crypto';
import { z } from 'zod';
import { shownFields } from '#libs/kernel/fields.ts';
import { type Entities, entity } from '#libs/platform/entity/index.ts';
import { shownTime } from '#libs/platform/http/index.ts';
import {
  CRAWL,
  type Crawl,
  crawlCodec,
  type CrawledPage,
  type CrawlEvent,
  crawlFold,
  type CrawlState,
  type EndedBy,
  hasEnded,
} from './crawl.ts';
import { BUDGET, bytesOf, fetchedPages, normalUrl, plannedPages, readPages } from './frontier.ts';

const pageFields = shownFields<CrawledPage>()({
  url: z.string(),
  status: z.int().nullable().describe('HTTP status of the last response; null without one'),
  title: z.string().nullable(),
  document_id: z.string().nullable(),
  outcome: z.enum(['read', 'unchanged', 'duplicate', 'gone', 'skipped', 'failed']),
  error: [
    z.string().nullable().describe('Why there is no document, or why it is that of an earlier scan'),
    (page) => (isExplained(page) ? failureOfPage(page) : null),
  ],
  characters: [
    z.int().nullable().describe('Of the text that was found; null for a PDF: its document says it'),
    ({ characters }) => characters ?? null,
  ],
});

const stats = z.object({
  scan: z.int().describe('Number of the scan, from 1'),
  pages: z.int().describe('Pages that were requested'),
  documents: z.int().describe('Pages that have a document of their own'),
  unchanged: z.int(),
  duplicates: z.int(),
  skipped: z.int(),
  left_out: z.record(z.string(), z.int()).describe('Pages that were not learnt, by reason, such as `no_text`'),
  characters: z.int().describe('Of the texts that were found'),
  failures: z.record(z.string(), z.int()).describe('Pages that could not be read, by reason'),
  bytes: z.int().describe('Of all responses, decoded'),
  pending: z.int().describe('URLs that were discovered and not visited'),
  duration_ms: z.int().nullable().describe('Null while the scan runs'),
  ended_by: z
    .string()
    .nullable()
    .describe('`all_pages`, `max_pages` (also after three requests for each of them), `max_bytes` or `max_time`'),
});

export const DEFAULT_MAX_PAGES = 50;

function isExplained({ outcome }: CrawledPage): boolean {
  return outcome === 'gone' || outcome === 'skipped' || outcome === 'failed';
}

const COMPLETED: Readonly<Record<EndedBy, string>> = {
  all_pages: 'Completed',
  max_pages: 'Completed',
  max_bytes: `Completed: stopped after ${BUDGET.bytes / 1024 ** 2} MiB`,
  max_time: `Completed: stopped after ${BUDGET.timeMs / 60_000} minutes`,
};

export function statusLabel(crawl: Crawl): string {
  switch (crawl.phase) {
    case 'queued':
      return 'Queued';
    case 'crawling':
      return `Crawling: ${readPages(crawl)} of ${plannedPages(crawl)} pages`;
    case 'completed':
      return COMPLETED[crawl.endedBy ?? 'all_pages'];
    case 'cancelled':
      return 'Cancelled';
    case 'failed':
      return `Failed: ${crawl.failure}`;
  }
}

function statsOf(crawl: Crawl): z.infer<typeof stats> {
  const { pages } = crawl;
  const count = (outcome: CrawledPage['outcome']) => pages.filter((page) => page.outcome === outcome).length;
  return {
    scan: crawl.scan,
    pages: fetchedPages(crawl),
    documents: count('read') + count('unchanged'),
    unchanged: count('unchanged'),
    duplicates: count('duplicate'),
    skipped: count('skipped'),
    left_out: reasonsOf(pages, ['skipped']),
    characters: pages.reduce((sum, page) => sum + (page.characters ?? 0), 0),
    failures: reasonsOf(pages, ['failed', 'gone']),
    bytes: bytesOf(crawl),
    pending: crawl.pending.length,
    duration_ms: crawl.endedAt === null ? null : Date.parse(crawl.endedAt) - Date.parse(crawl.requestedAt),
    ended_by: crawl.endedBy,
  };
}

/** How many pages have each reason, among those of some outcomes. */
function reasonsOf(pages: readonly CrawledPage[], outcomes: readonly CrawledPage['outcome'][]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const { outcome, reason } of pages) {
    const name = reason ?? outcome;
    if (outcomes.includes(outcome)) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return Object.fromEntries(counts);
}

const crawlFields = shownFields<Crawl>()({
  id: z.string(),
  created: [shownTime(), ({ createdAt }) => createdAt],
  modified: shownTime(),
  url: z.string(),
  knowledge_graph: z.string().nullable(),
  scan_depth: z.int(),
  max_pages: [
    z.int().describe('Applies when `scan_depth` is above 1'),
    // A crawl of one page stores 1.
    ({ scanDepth, maxPages }) => (scanDepth === 1 ? DEFAULT_MAX_PAGES : maxPages),
  ],
  last_scan_date: [
    z.string().describe('When the last scan ended; while it has not, when it was requested'),
    ({ endedAt, requestedAt }) => endedAt ?? requestedAt,
  ],
  status: [
    z
      .string()
      .nullable()
      .describe(
        '`Queued`, `Crawling: 3 of 50 pages`, `Completed`, `Completed: <why early>`, `Cancelled` or `Failed: <why>`',
      ),
    statusLabel,
  ],
  crawl_stats: [stats, statsOf],
  crawled_urls: [z.array(z.object(pageFields.shape)).default([]), ({ pages }) => pages.map(pageFields.resource)],
  website_metadata: [
    z
      .object({
        title: z.string().nullable(),
        description: z.string().nullable(),
        icon: z.string().nullable(),
        language: z.string().nullable(),
      })
      .partial()
      .default({})
      .describe('Of the start page; empty until it is read'),
    ({ website }) => website ?? {},
  ],
  error_details: [z.string().nullable(), ({ failure }) => failure],
  is_active: z.boolean().default(true),
});
export const crawlSchema = z.object(crawlFields.shape).meta({ id: 'Crawl' });

export type CrawlFacets = {
  readonly status: string;
  readonly url: string;
  readonly is_active: boolean;
  readonly knowledge_graph: string | null;
};

/** Of a URL: short, and the same for all ways to write it. */
export function urlFacet(url: string): string {
  return createHash('sha256')
    .update(normalUrl(url) ?? url)
    .digest('base64url');
}

export const crawlEntity = entity<CrawlState, CrawlEvent, CrawlFacets>({
  category: CRAWL,
  version: 5,
  codec: crawlCodec,
  fold: crawlFold,
  resource: crawlFields.resource,
  facets: (crawl) => ({
    status: crawl.phase,
    url: urlFacet(crawl.url),
    is_active: crawl.isActive,
    knowledge_graph: crawl.knowledgeGraph,
  }),
  isEnded: hasEnded,
  frame: ({ event }) => FRAMES[event.type],
});

const FRAMES: Readonly<Record<CrawlEvent['type'], string>> = {
  'CrawlRequested.v1': 'crawl.created',
  'RescanRequested.v1': 'crawl.queued',
  'CrawlStarted.v1': 'crawl.started',
  'RobotsRead.v1': 'crawl.progress',
  'PagesVisited.v1': 'crawl.progress',
  'PagesCrawled.v1': 'crawl.progress',
  'CrawlCompleted.v1': 'crawl.completed',
  'CrawlFailed.v1': 'crawl.failed',
  'CrawlCancelled.v1': 'crawl.cancelled',
  'CrawlDeactivated.v1': 'crawl.deactivated',
};

export type Crawls = Entities<CrawlState, CrawlEvent, CrawlFacets>;

/** Sentences about a page, which follow its URL, by the reason of its outcome. */
const TEXTS: Readonly<Record<string, string>> = {
  not_found: 'does not exist (404 or 410)',
  invalid_url: 'leads to a URL that is not valid',
  scheme_refused: 'leads to a URL that is neither http nor https',
  userinfo_refused: 'leads to a URL with a user name or password, which is not fetched',
  port_refused: 'leads to a port that is not fetched, only 80 and 443 are',
  address_refused: 'leads to an address that is not public',
  name_not_found: 'is on a host whose name does not exist',
  connect_failed: 'is on a server that cannot be reached',
  tls_failed: 'is on a server that did not agree on a secure connection',
  timeout: 'did not arrive in time',
  too_slow: 'arrived at less than 512 bytes a second',
  too_large: 'is larger than 5 MiB',
  too_many_redirects: 'redirects more than 5 times',
  redirect_loop: 'redirects in a circle',
  disconnected: 'ended before it was complete',
  bad_response: 'was answered with what is not valid HTTP',
  decode_failed: 'does not decode as its Content-Encoding says',
  unreadable: 'cannot be read: it takes too much time or memory',
  unsupported_type: 'is neither a page nor text',
  no_text: 'holds no text',
  noindex: 'asks not to be indexed',
  robots: 'is excluded by robots.txt',
  robots_unreadable: 'is on a server whose robots.txt cannot be read',
  robots_of_redirect: 'redirects to a page that robots.txt excludes',
  other_site: 'redirects to another site',
};

/** Why a page has no document: a sentence without a full stop. */
export function failureOfPage({ url, reason }: CrawledPage): string {
  const status = /^http_(\d+)$/.exec(reason ?? '')?.[1];
  return `${url} ${status === undefined ? (TEXTS[reason ?? ''] ?? 'cannot be read') : `answered ${status}`}`;
}
