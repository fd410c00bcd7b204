import { describe, expect, it } from 'vitest';

import { stateAfter } from '#test/support/log-events.ts';

import { type Crawl, type CrawledPage, crawlFold } from './crawl.ts';
import { BUDGET, Discovery, endOf, KnownPages, normalUrl, plannedPages, siteOf } from './frontier.ts';

const start = 'https://example.org/';

function crawl(values: Partial<Crawl> = {}): Crawl {
  const data = { id: 'crawl-1', url: start, knowledgeGraph: null, scanDepth: 2, maxPages: 3 };
  const state = stateAfter(crawlFold, [{ type: 'CrawlRequested.v1', data }]);
  if (state === null) throw new Error('no crawl');
  return { ...state, ...values };
}

const page: CrawledPage = {
  url: start,
  depth: 1,
  outcome: 'read',
  reason: null,
  status: 200,
  canonicalUrl: null,
  title: null,
  documentId: 'document-1',
  hash: 'hash',
  etag: null,
  lastModified: null,
  bytes: 10,
  links: [],
};

describe('URLs', () => {
  it('are compared without fragments and default ports', () => {
    expect(normalUrl('HTTP://Example.org:80/a/../b?x=1#part')).toBe('http://example.org/b?x=1');
    expect(normalUrl('c', 'https://example.org/a/b')).toBe('https://example.org/a/c');
  });

  it.each(['mailto:a@example.org', 'javascript:alert(1)', 'file:///etc/passwd', 'http://user@example.org/', 'http://'])(
    'cannot be %s',
    (url) => expect(normalUrl(url)).toBeNull(),
  );

  it('belong to the site of their host, with www. or without, and of their port', () => {
    expect(siteOf('https://www.example.org/a')).toBe(siteOf('http://example.org/b'));
    expect(siteOf('https://docs.example.org/')).not.toBe(siteOf(start));
    expect(siteOf('https://example.org:8443/')).not.toBe(siteOf(start));
  });
});

describe('a scan', () => {
  it('ends when no page is left, or when a budget is used up', () => {
    const three = { pages: [page, page, page] };
    expect(endOf(crawl(), 0)).toBeNull();
    expect(endOf(crawl({ pages: [page], pending: [] }), 0)).toBe('all_pages');
    expect(endOf(crawl(three), 0)).toBe('max_pages');
    expect(endOf(crawl({ pages: [{ ...page, bytes: BUDGET.bytes }] }), 0)).toBe('max_bytes');
    expect(endOf(crawl(), BUDGET.timeMs)).toBe('max_time');
  });

  it('does not count pages that robots.txt excludes', () => {
    const excluded: CrawledPage = { ...page, outcome: 'skipped', reason: 'robots', documentId: null };
    expect(endOf(crawl({ pages: [page, excluded, excluded, excluded] }), 0)).toBeNull();
    expect(plannedPages(crawl({ pages: [page, excluded] }))).toBe(2);
  });
});

describe('discovery', () => {
  it('takes each URL of the site once, one level below the page', () => {
    const discovery = new Discovery(crawl(), 'example.org');
    const links = ['https://example.org/a#1', 'https://other.example/', 'https://www.example.org/b', start];
    expect(discovery.add([...links, 'https://example.org/a#2'], 1)).toEqual({ links: [1, 2, 0], isWhole: true });
    expect(discovery.found).toEqual([
      { url: 'https://example.org/a', depth: 2 },
      { url: 'https://www.example.org/b', depth: 2 },
    ]);
  });

  it('takes none below the depth of the scan', () => {
    const discovery = new Discovery(crawl(), 'example.org');
    expect(discovery.add(['https://example.org/a'], 2)).toEqual({ links: [], isWhole: true });
  });

  it('takes more links of a page than it records', () => {
    const discovery = new Discovery(crawl({ maxPages: 300 }), 'example.org');
    const links = Array.from({ length: 700 }, (_, index) => `https://example.org/${index}`);
    const added = discovery.add(links, 1);
    expect(discovery.found).toHaveLength(700);
    expect(added.links).toHaveLength(500);
    expect(added.isWhole).toBe(false);
  });

  it('is bounded for the scan, and says when links of a page are missing', () => {
    const discovery = new Discovery(crawl(), 'example.org');
    const links = Array.from({ length: 1000 }, (_, index) => `https://example.org/${index}`);
    expect(discovery.add(links, 1).isWhole).toBe(false);
    expect(discovery.found).toHaveLength(29);
    const long = new Discovery(crawl({ maxPages: 300 }), 'example.org');
    for (const link of links) long.add([link + 'x'.repeat(2_000)], 1);
    expect(long.found.length).toBeLessThan(BUDGET.urlCharacters / 2_000);
  });
});

describe('known pages', () => {
  it('are found by each of their URLs and by their text', () => {
    const known = new KnownPages([{ ...page, canonicalUrl: `${start}canonical` }]);
    expect(known.at(start)?.documentId).toBe('document-1');
    expect(known.at(`${start}canonical`)?.documentId).toBe('document-1');
    expect(known.withText('hash')?.url).toBe(start);
  });

  it('are those with a document of their own', () => {
    const known = new KnownPages([
      { ...page, outcome: 'duplicate' },
      { ...page, outcome: 'failed', documentId: null },
    ]);
    expect(known.at(start)).toBeUndefined();
  });
});
