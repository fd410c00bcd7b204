import { describe, expect, it } from 'vitest';

import { describeStoredEvents } from '#test/support/event-samples.ts';
import { stateAfter } from '#test/support/log-events.ts';

import samples from './crawl.events.samples.json' with { type: 'json' };
import {
  type Crawl,
  crawlCodec,
  type CrawledPage,
  type CrawlEvent,
  crawlFold,
  decideCancel,
  decideDeactivate,
  decideRescan,
  hasEnded,
  removableDocuments,
  urlsOf,
} from './crawl.ts';

describeStoredEvents('crawls', crawlCodec, samples);

const site = 'https://example.org';

function page(path: string, values: Partial<CrawledPage> = {}): CrawledPage {
  return {
    url: `${site}${path}`,
    depth: 1,
    outcome: 'read',
    reason: null,
    status: 200,
    canonicalUrl: null,
    title: null,
    documentId: `document of ${path}`,
    hash: path,
    etag: '"1"',
    lastModified: null,
    bytes: 100,
    links: [],
    ...values,
  };
}

const requested: CrawlEvent = {
  type: 'CrawlRequested.v1',
  data: { id: 'crawl-1', url: `${site}/`, knowledgeGraph: 'graph-1', scanDepth: 2, maxPages: 10 },
};
const started: CrawlEvent = { type: 'CrawlStarted.v1', data: { scan: 1, site: 'example.org' } };
const cancelled: CrawlEvent = { type: 'CrawlCancelled.v1', data: { scan: 1 } };
const rescan: CrawlEvent = { type: 'RescanRequested.v1', data: { scan: 2 } };

function crawled(pages: readonly CrawledPage[], found: readonly string[] = [], scan = 1): CrawlEvent {
  const urls = found.map((path) => ({ url: `${site}${path}`, depth: 2 }));
  return { type: 'PagesCrawled.v1', data: { scan, pages: [...pages], found: urls, website: null } };
}

function completed(removed: readonly string[] = [], scan = 1): CrawlEvent {
  return { type: 'CrawlCompleted.v1', data: { scan, endedBy: 'all_pages', removed: [...removed] } };
}

function given(...events: CrawlEvent[]): Crawl {
  const state = stateAfter(crawlFold, events);
  if (state === null) throw new Error('these events create nothing');
  return state;
}

const nothing = { ok: true, events: [] };

describe('a crawl', () => {
  it('has its start URL to visit first', () => {
    expect(given(requested)).toMatchObject({ phase: 'queued', pages: [], pending: [{ url: `${site}/`, depth: 1 }] });
  });

  it('visits pages in the order of their discovery', () => {
    const crawl = given(requested, started, crawled([page('/')], ['/a', '/b']), crawled([page('/a')], ['/c']));
    expect(crawl.pages.map(({ url }) => url)).toEqual([`${site}/`, `${site}/a`]);
    expect(crawl.pending.map(({ url }) => url)).toEqual([`${site}/b`, `${site}/c`]);
    expect(urlsOf(crawl).map((url) => url.slice(site.length))).toEqual(['/', '/a', '/b', '/c']);
    expect(crawl).toMatchObject({ phase: 'crawling' });
  });

  it('ends once, and is cancelled only while it runs', () => {
    expect(decideCancel(given(requested))).toEqual({ ok: true, events: [cancelled] });
    expect(decideCancel(given(requested, cancelled))).toEqual(nothing);
    expect(hasEnded(given(requested, started, completed()))).toBe(true);
    expect(decideCancel(given(requested, started, completed()))).toEqual(nothing);
  });

  it('is scanned again only after it has ended, and while it is active', () => {
    const refused = (reason: string) => ({ ok: false, rejection: { reason } });
    expect(decideRescan(given(requested))).toEqual(refused('running'));
    expect(decideRescan(given(requested, cancelled))).toEqual({ ok: true, events: [rescan] });
    const inactive = given(requested, cancelled, { type: 'CrawlDeactivated.v1', data: {} });
    expect(decideRescan(inactive)).toEqual(refused('inactive'));
  });

  it('is cancelled when it becomes inactive', () => {
    const deactivated = { type: 'CrawlDeactivated.v1', data: {} };
    expect(decideDeactivate(given(requested))).toEqual({ ok: true, events: [cancelled, deactivated] });
    expect(decideDeactivate(given(requested, cancelled))).toEqual({ ok: true, events: [deactivated] });
    expect(decideDeactivate(given(requested, cancelled, { type: 'CrawlDeactivated.v1', data: {} }))).toEqual(nothing);
  });
});

describe('a scan that follows another', () => {
  const first = [requested, started, crawled([page('/', { links: [1, 2] })], ['/a', '/b'])];
  const whole = [...first, crawled([page('/a'), page('/b')]), completed()];

  it('starts from the start URL, and knows the pages of the one before', () => {
    const crawl = given(...whole, rescan);
    expect(crawl).toMatchObject({ scan: 2, phase: 'queued', pages: [], robots: [], endedAt: null });
    expect(crawl.pending).toEqual([{ url: `${site}/`, depth: 1 }]);
    expect(crawl.previous.map(({ documentId }) => documentId)).toEqual([
      'document of /',
      'document of /a',
      'document of /b',
    ]);
    expect(crawl.previousUrls).toHaveLength(3);
  });

  it('removes the documents of pages that are gone or no longer linked', () => {
    const gone = page('/a', { outcome: 'gone', documentId: null, status: 404 });
    const crawl = given(...whole, rescan, crawled([page('/')], ['/a'], 2), crawled([gone], [], 2));
    expect(removableDocuments(crawl, true)).toEqual(['document of /a', 'document of /b']);
    expect(removableDocuments(crawl, false)).toEqual(['document of /a']);
  });

  it('keeps the documents of pages that could not be read this time, or that another page leads to', () => {
    const failed = page('/a', { outcome: 'failed', reason: 'timeout', status: null });
    const moved = page('/c', { outcome: 'duplicate', documentId: 'document of /b' });
    const crawl = given(...whole, rescan, crawled([page('/')], ['/a', '/c'], 2), crawled([failed, moved], [], 2));
    expect(removableDocuments(crawl, true)).toEqual([]);
  });

  it('knows the documents that an interrupted scan did not reach, and reads those pages again', () => {
    const interrupted = [...whole, rescan, crawled([page('/')], ['/a', '/b'], 2), cancelled];
    const { previous } = given(...interrupted, { type: 'RescanRequested.v1', data: { scan: 3 } });
    expect(previous.map(({ url, etag }) => [url.slice(site.length), etag])).toEqual([
      ['/', '"1"'],
      ['/a', null],
      ['/b', null],
    ]);
  });

  it('forgets the documents that the one before removed', () => {
    const removed = [...whole, rescan, crawled([page('/')], [], 2), completed(['document of /a', 'document of /b'], 2)];
    const { previous } = given(...removed, { type: 'RescanRequested.v1', data: { scan: 3 } });
    expect(previous.map(({ documentId }) => documentId)).toEqual(['document of /']);
  });
});
