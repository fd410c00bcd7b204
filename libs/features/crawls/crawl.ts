/*
 * Event names and shapes are the storage format: what was written with them stays in the log for ever.
 * Never change one in place. A new version is a new type, and the old one gets an upcaster.
 */
import { z } from 'zod';

import type { Timestamp } from '#libs/kernel/clock.ts';
import { accept, type Decision, type Fold, refuse } from '#libs/kernel/decider.ts';
import { changedBy, createdBy, type EntityState } from '#libs/kernel/entity.ts';
import type { StreamEvent, StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';

/** Category of the streams, `crawl-<id>`. */
export const CRAWL = 'crawl';

const page = z.object({
  url: z.string(),
  /** 1 is the start page. */
  depth: z.int(),
  /**
   * `read`: its document was created or changed. `unchanged`: its document is still right. `duplicate`: `documentId` is
   * that of another page. `gone`: 404 or 410. `skipped`: it is not to be read, or holds no text. `failed`: not read this
   * time; a document of an earlier scan stays.
   */
  outcome: z.enum(['read', 'unchanged', 'duplicate', 'gone', 'skipped', 'failed']),
  /** Why it was skipped or has failed: a word with underscores, such as `timeout`. */
  reason: z.string().nullable(),
  /** Status of the last response; null without one. */
  status: z.int().nullable(),
  /** Where redirects and `rel=canonical` lead; null if that is `url`. */
  canonicalUrl: z.string().nullable(),
  title: z.string().nullable(),
  documentId: z.string().nullable(),
  /** SHA-256 of the text in hexadecimal. */
  hash: z.string().nullable(),
  /** Validators for the next scan; null also if not all links of the page are in `links`, and of a page that another forwards to. */
  etag: z.string().nullable(),
  lastModified: z.string().nullable(),
  bytes: z.int(),
  /** Of its readable text; null for files, which their documents count, and for pages that were not read. Older events lack it. */
  characters: z.int().nullish(),
  /** Pages of the same site that it links to: indexes into the URLs of the scan in the order of their discovery. */
  links: z.array(z.int()),
});

const found = z.object({ url: z.string(), depth: z.int() });

const website = z.object({
  title: z.string().nullable(),
  description: z.string().nullable(),
  icon: z.string().nullable(),
  language: z.string().nullable(),
});

/** The rules of a robots.txt for Parley. */
const robots = z.object({
  /** `https://example.org`. */
  origin: z.string(),
  /** Why it cannot be read, for people; then nothing is allowed. */
  problem: z.string().nullable(),
  /** Patterns of paths, see `parseRobots`. */
  allow: z.array(z.string()),
  disallow: z.array(z.string()),
  crawlDelayMs: z.int().nullable(),
});

/** A crawl has scans, counted from 1: the first one, and one for each `RescanRequested`. */
const scan = z.int();

/** The next pages in the order of their discovery, and the URLs that were discovered meanwhile. */
const crawledPages = z.object({
  scan,
  pages: z.array(page),
  found: z.array(found),
  /** Of the start page. */
  website: website.nullable(),
});

export const crawlCodec = defineEvents({
  'CrawlRequested.v1': z.object({
    id: z.string(),
    url: z.string(),
    knowledgeGraph: z.string().nullable(),
    scanDepth: z.int(),
    maxPages: z.int(),
  }),
  'RescanRequested.v1': z.object({ scan }),
  /** The start URL was reached. `site`: the host that pages belong to, see `siteOf`. */
  'CrawlStarted.v1': z.object({ scan, site: z.string() }),
  'RobotsRead.v1': robots.extend({ scan }),
  /** In the course of a step. */
  'PagesVisited.v1': crawledPages,
  /** At the end of a step: the next one follows from it. */
  'PagesCrawled.v1': crawledPages,
  /** `removed`: documents that were deleted, such as those of earlier scans that the site no longer has. */
  'CrawlCompleted.v1': z.object({
    scan,
    endedBy: z.enum(['all_pages', 'max_pages', 'max_bytes', 'max_time']),
    removed: z.array(z.string()),
  }),
  /** `reason`: a sentence for people, without a full stop. */
  'CrawlFailed.v1': z.object({ scan, reason: z.string(), removed: z.array(z.string()) }),
  'CrawlCancelled.v1': z.object({ scan }),
  'CrawlDeactivated.v1': z.object({}),
});

export type CrawlEvent = EventOf<typeof crawlCodec>;
type Data<Type extends CrawlEvent['type']> = Extract<CrawlEvent, { type: Type }>['data'];
export type CrawlRequested = Data<'CrawlRequested.v1'>;
export type EndedBy = Data<'CrawlCompleted.v1'>['endedBy'];
export type CrawledPage = z.infer<typeof page>;
export type CrawledPages = z.infer<typeof crawledPages>;
export type FoundUrl = z.infer<typeof found>;
export type Website = z.infer<typeof website>;
export type Robots = z.infer<typeof robots>;

export type Phase = 'queued' | 'crawling' | 'completed' | 'failed' | 'cancelled';

export type Crawl = CrawlRequested & EntityState & Progress;

interface Progress {
  readonly isActive: boolean;
  readonly scan: number;
  readonly phase: Phase;
  readonly requestedAt: Timestamp;
  readonly requestedRevision: StreamRevision;
  /** Of the event that ended the scan; null while it is queued or runs. */
  readonly endedAt: Timestamp | null;
  readonly endedBy: EndedBy | null;
  readonly failure: string | null;
  readonly site: string | null;
  readonly website: Website | null;
  readonly robots: readonly Robots[];
  /** Pages of this scan. */
  readonly pages: readonly CrawledPage[];
  /** Discovered after them, oldest first. */
  readonly pending: readonly FoundUrl[];
  /** Pages with documents of earlier scans, by which this one recognises what is unchanged or gone. */
  readonly previous: readonly CrawledPage[];
  /** The URLs that `links` of `previous` refer to. */
  readonly previousUrls: readonly string[];
}

/** `null` until the crawl is requested. */
export type CrawlState = Crawl | null;

const nothingYet = {
  endedAt: null,
  endedBy: null,
  failure: null,
  site: null,
  robots: [],
  pages: [],
} as const;

export const crawlFold: Fold<CrawlState, CrawlEvent> = {
  initialState: null,
  evolve(state, event) {
    if (event.type === 'CrawlRequested.v1') return requested(event);
    return state && { ...state, ...changedBy(event), ...changes(state, event) };
  },
};

function requested(event: StreamEvent<Extract<CrawlEvent, { type: 'CrawlRequested.v1' }>>): Crawl {
  return {
    ...event.data,
    ...createdBy(event),
    ...nothingYet,
    isActive: true,
    scan: 1,
    phase: 'queued',
    requestedAt: event.metadata.at,
    requestedRevision: event.revision,
    website: null,
    pending: [{ url: event.data.url, depth: 1 }],
    previous: [],
    previousUrls: [],
  };
}

function changes(crawl: Crawl, event: StreamEvent<CrawlEvent>): Partial<Crawl> {
  const { at } = event.metadata;
  switch (event.type) {
    case 'CrawlRequested.v1':
      return {};
    case 'RescanRequested.v1':
      return {
        ...nothingYet,
        scan: event.data.scan,
        phase: 'queued',
        requestedAt: at,
        requestedRevision: event.revision,
        pending: [{ url: crawl.url, depth: 1 }],
        previous: pagesWithDocuments(crawl),
        previousUrls: urlsOf(crawl),
      };
    case 'CrawlStarted.v1':
      return { phase: 'crawling', site: event.data.site };
    case 'RobotsRead.v1': {
      const { scan: _scan, ...read } = event.data;
      return { robots: [...crawl.robots, read] };
    }
    case 'PagesVisited.v1':
    case 'PagesCrawled.v1':
      return { ...afterPages(crawl, event.data), website: event.data.website ?? crawl.website };
    case 'CrawlCompleted.v1':
      return { phase: 'completed', endedAt: at, endedBy: event.data.endedBy, ...without(crawl, event.data.removed) };
    case 'CrawlFailed.v1':
      return { phase: 'failed', endedAt: at, failure: event.data.reason, ...without(crawl, event.data.removed) };
    case 'CrawlCancelled.v1':
      return { phase: 'cancelled', endedAt: at };
    case 'CrawlDeactivated.v1':
      return { isActive: false };
  }
}

/** The pages that a crawl has visited once these are recorded, which were its next pending ones, and those that remain. */
export function afterPages(
  crawl: Crawl,
  { pages, found }: { readonly pages: readonly CrawledPage[]; readonly found: readonly FoundUrl[] },
): Pick<Crawl, 'pages' | 'pending'> {
  return {
    pages: [...crawl.pages, ...pages],
    pending: [...crawl.pending.slice(pages.length), ...found],
  };
}

function without({ pages, previous }: Crawl, removed: readonly EntityId[]): Pick<Crawl, 'pages' | 'previous'> {
  const ids = new Set<EntityId | null>(removed);
  return {
    pages: pages.map((one) => (ids.has(one.documentId) ? { ...one, documentId: null } : one)),
    previous: previous.filter(({ documentId }) => !ids.has(documentId)),
  };
}

/**
 * The pages whose documents exist after a scan: its own, and those of earlier scans that it did not remove. The latter
 * have no validators and links, so that the next scan reads them again. At most three times `maxPages`.
 */
function pagesWithDocuments(crawl: Crawl): CrawledPage[] {
  const current = crawl.pages.filter((one) => one.documentId !== null && one.outcome !== 'duplicate');
  const ids = documentsOf(crawl.pages);
  const earlier = crawl.previous.filter(({ documentId }) => documentId !== null && !ids.has(documentId));
  const rest = earlier.map((one) => ({ ...one, etag: null, lastModified: null, links: [] }));
  return [...current, ...rest].slice(0, 3 * crawl.maxPages);
}

/**
 * Documents of earlier scans that the site no longer has. A scan that did not reach all pages removes only those of
 * pages that it visited.
 */
export function removableDocuments(crawl: Crawl, isWhole: boolean): EntityId[] {
  const visited = new Set(crawl.pages.map(({ url }) => url));
  const former = crawl.previous.filter(({ url }) => isWhole || visited.has(url));
  const ids = documentsOf(crawl.pages);
  return [...documentsOf(former)].filter((id) => !ids.has(id));
}

/** Of this scan and of earlier ones. */
export function allDocuments({ pages, previous }: Crawl): EntityId[] {
  return [...documentsOf([...pages, ...previous])];
}

function documentsOf(pages: readonly CrawledPage[]): Set<EntityId> {
  return new Set(pages.flatMap(({ documentId }) => documentId ?? []));
}

/** All URLs of the scan in the order of their discovery. */
export function urlsOf({ pages, pending }: Pick<Crawl, 'pages' | 'pending'>): string[] {
  return [...pages, ...pending].map(({ url }) => url);
}

export function hasEnded({ phase }: Crawl): boolean {
  return phase !== 'queued' && phase !== 'crawling';
}

export type CrawlRejection = { readonly reason: 'running' } | { readonly reason: 'inactive' };

/** A scan that has ended stays as it is. */
export function decideCancel(crawl: Crawl): Decision<CrawlEvent, never> {
  return hasEnded(crawl) ? accept() : accept({ type: 'CrawlCancelled.v1', data: { scan: crawl.scan } });
}

export function decideRescan(crawl: Crawl): Decision<CrawlEvent, CrawlRejection> {
  if (!crawl.isActive) return refuse({ reason: 'inactive' });
  if (!hasEnded(crawl)) return refuse({ reason: 'running' });
  return accept({ type: 'RescanRequested.v1', data: { scan: crawl.scan + 1 } });
}

/** A scan that runs is cancelled; documents stay. */
export function decideDeactivate(crawl: Crawl): Decision<CrawlEvent, never> {
  if (!crawl.isActive) return accept();
  const cancelled: CrawlEvent[] = hasEnded(crawl) ? [] : [{ type: 'CrawlCancelled.v1', data: { scan: crawl.scan } }];
  return accept<CrawlEvent>(...cancelled, { type: 'CrawlDeactivated.v1', data: {} });
}
