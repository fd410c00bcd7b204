/** What a crawl reads, and how it ends. */
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';

import { describe, expect, it } from 'vitest';

import { unvisitedPage } from '#libs/features/crawls/visit.ts';
import { NO_EVENTS } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { DOCUMENTS } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';
import { logEvent } from '#test/support/log-events.ts';
import { html } from '#test/support/website.ts';

import {
  CRAWLS,
  site,
  api,
  graph,
  origin,
  type Json,
  requested,
  ended,
  crawled,
  rescanned,
  outcomes,
  documentOf,
  publish,
  useCrawledSite,
} from './crawled-site.ts';

useCrawledSite();

describe('a crawl', () => {
  it('of depth 1 reads the start page only, and is answered as the contract has it', async () => {
    const head = '<meta name="description" content="About tests"><link rel="icon" href="/i.png">';
    site.pages.set('/', html('Start', { links: ['/a'], head }));
    const created = await requested({});
    expect(created).toMatchObject({ status: 'Queued', scan_depth: 1, is_active: true, crawled_urls: [] });
    expect(created.website_metadata).toEqual({});
    const crawl = await ended(created.id);
    expect(crawl).toMatchObject({
      id: created.id,
      url: `${site.origin}/`,
      status: 'Completed',
      error_details: null,
      website_metadata: {
        title: 'Start',
        description: 'About tests',
        icon: `${site.origin}/i.png`,
        language: 'en',
      },
      crawl_stats: { pages: 1, documents: 1, failures: {}, unchanged: 0, ended_by: 'all_pages' },
      crawled_urls: [{ url: `${site.origin}/`, status: 200, title: 'Start', document_id: expect.any(String) }],
    });
    expect(crawl.crawl_stats.bytes).toBeGreaterThan(100);
    const { characters } = await api.settled(documentOf(crawl, '/'));
    expect(characters).toBeGreaterThan(10);
    expect([crawl.crawl_stats.characters, crawl.crawled_urls[0].characters]).toEqual([characters, characters]);
    expect(crawl.crawl_stats.duration_ms).toBeGreaterThanOrEqual(0);
    expect(Date.parse(crawl.last_scan_date)).toBeGreaterThanOrEqual(Date.parse(crawl.created));
    expect(site.requests).toEqual(['/']);
    expect(await api.settled(documentOf(crawl, '/'))).toMatchObject({ status: 'Ready', name: 'Start' });
  });

  it('follows links to its depth, within the site, each page once', async () => {
    publish({
      '/': ['/a', '/b#part', '/a', 'https://elsewhere.example/', 'mailto:a@b.example'],
      '/a': ['/', '/deep'],
      '/b': ['/a'],
      '/deep': ['/deeper'],
    });
    const crawl = await crawled({ scan_depth: 2 });
    expect(outcomes(crawl)).toEqual([
      ['/', 'read'],
      ['/a', 'read'],
      ['/b', 'read'],
    ]);
    expect(outcomes(await crawled({ scan_depth: 3 })).map(([path]) => path)).toEqual(['/', '/a', '/b', '/deep']);
    expect(site.requests.toSorted()).toEqual(['/', '/', '/a', '/a', '/b', '/b', '/deep']);
  });

  it('stops at max_pages, also on a site that links without end', async () => {
    site.pages.set('/', html('Start', { links: ['/1'] }));
    for (let n = 1; n < 200; n += 1)
      site.pages.set(`/${n}`, html(`Page ${n}`, { links: [`/${2 * n}`, `/${2 * n + 1}`] }));
    const crawl = await crawled({ scan_depth: 3, max_pages: 3 });
    expect(crawl).toMatchObject({ status: 'Completed', crawl_stats: { pages: 3, ended_by: 'max_pages' } });
    expect(site.requests).toHaveLength(3);
  });

  it('reads a page with 100,000 links', async () => {
    const links = Array.from({ length: 100_000 }, (_, index) => `/${index}`);
    site.pages.set('/', html('Many', { links }));
    const crawl = await crawled({ scan_depth: 2, max_pages: 10 });
    // Missing pages do not count, but a scan makes no more than three requests for each page that it may read.
    const crawl_stats = { pages: 30, failures: { not_found: 29 }, ended_by: 'max_pages' };
    expect(crawl).toMatchObject({ status: 'Completed', crawl_stats });
    expect(crawl.crawl_stats.pending).toBeLessThan(100);
  });

  it('reads as many pages as max_pages says beside missing ones, images and copies', async () => {
    publish({ '/': ['/missing', '/a.png', '/copy', '/one', '/two', '/three'] });
    site.pages.set('/a.png', { headers: { 'content-type': 'image/png' }, body: 'png' });
    site.pages.set('/copy', html('Copy', { head: `<link rel="canonical" href="${site.origin}/">` }));
    for (const path of ['/one', '/two', '/three']) site.pages.set(path, html(path));
    const crawl = await crawled({ scan_depth: 2, max_pages: 3 });
    expect(outcomes(crawl)).toEqual([
      ['/', 'read'],
      ['/missing', 'gone'],
      ['/a.png', 'skipped'],
      ['/copy', 'duplicate'],
      ['/one', 'read'],
      ['/two', 'read'],
    ]);
  });

  it.each([
    ['meta refresh', { body: '<meta http-equiv=Refresh content="0; URL=home/index.html">' }],
    ['meta refresh, with a text', { body: '<meta http-equiv=refresh content=\'3;url="/home/index.html"\'><p>Wait.' }],
    ['a header', { headers: { refresh: '0;url=/home/index.html' }, body: '<p>Wait.' }],
    ['its only frame', { body: '<frameset cols=100%><frame src=/home/index.html></frameset>' }],
    ['its main frame', { body: '<frameset><frame src=/menu><frame name=main src=/home/index.html></frameset>' }],
    ['an iframe', { body: '<body><iframe src=/home/index.html width=100% height=100%></iframe>' }],
  ])('follows a start page that forwards by %s', async (_, start) => {
    publish({ '/home/index.html': ['next.html'], '/home/next.html': [] });
    site.pages.set('/', start);
    const crawl = await crawled({ scan_depth: 2 });
    expect(crawl.website_metadata).toMatchObject({ title: 'Page /home/index.html' });
    const read = crawl.crawled_urls.filter(({ outcome }: { outcome: string }) => outcome === 'read');
    expect(read.map(({ title }: { title: string }) => title)).toEqual([
      'Page /home/index.html',
      'Page /home/next.html',
    ]);
  });

  it.each([
    ['to itself', '<meta http-equiv=refresh content="0;url=/">'],
    ['in a minute', '<meta http-equiv=refresh content="60;url=/later">'],
    ['for readers without scripts', '<noscript><meta http-equiv=refresh content="0;url=/later"></noscript>'],
    ['in a circle', '<meta http-equiv=refresh content="0;url=/back">'],
    ['as a counter', '<iframe src=/later width=1 height=1></iframe>'],
  ])('reads a start page that forwards %s', async (_, head) => {
    site.pages.set('/', `<head>${head}<title>Start</title></head><body><p>The text of the start page.`);
    site.pages.set(
      '/back',
      '<meta http-equiv=refresh content="0;url=/"><title>Start</title><p>The text of the start page.',
    );
    const crawl = await crawled({});
    expect(crawl).toMatchObject({ status: 'Completed', crawled_urls: [{ outcome: 'read', title: 'Start' }] });
  });

  it('forwards five times', async () => {
    const titled = (n: number, head: string) => html(`Page ${n}`, { head });
    for (let n = 0; n <= 7; n += 1)
      site.pages.set(n === 0 ? '/' : `/${n}`, titled(n, `<meta http-equiv=refresh content="0;url=/${n + 1}">`));
    const crawl = await crawled({});
    expect(crawl).toMatchObject({ status: 'Completed', crawled_urls: [{ outcome: 'read', title: 'Page 5' }] });
    expect(site.requests).toEqual(['/', '/1', '/2', '/3', '/4', '/5']);
  });

  it('has the cookie that a redirect to the same page sets', async () => {
    site.pages.set('/', {
      answer: (request, response) =>
        request.headers.cookie === 'seen=1; lang=en'
          ? response.end(html('Start'))
          : response
              .writeHead(302, { location: '/', 'set-cookie': ['seen=1; Path=/', 'lang=en', 'x=y; Domain=example.org'] })
              .end(),
    });
    const crawl = await crawled({});
    expect(crawl).toMatchObject({ status: 'Completed', crawled_urls: [{ outcome: 'read' }] });
  });

  it('reads short texts in encodings that nobody declares', async () => {
    publish({ '/': ['/zh.txt', '/ja.html'] });
    const gbk = Buffer.from('c4e3bac3a3accac0bde7a1a3', 'hex');
    const shiftJis = Buffer.from('82b182f182c982bf82cd90a28a458142', 'hex');
    site.pages.set('/zh.txt', { headers: { 'content-type': 'text/plain' }, body: gbk });
    site.pages.set('/ja.html', {
      headers: { 'content-type': 'text/html' },
      body: Buffer.concat([Buffer.from('<p>'), shiftJis]),
    });
    const crawl = await crawled({ scan_depth: 2 });
    const headers = { authorization: api.api.rootKey };
    const texts = ['/zh.txt', '/ja.html'].map(async (path) =>
      (await fetch(`${origin}${DOCUMENTS}/${documentOf(crawl, path)}/content`, { headers })).text(),
    );
    expect(await Promise.all(texts)).toEqual(['你好，世界。', 'こんにちは世界。']);
  });

  it('recognises duplicates by redirect, canonical URL and text', async () => {
    publish({ '/': ['/a', '/moved', '/print', '/copy'] });
    site.pages.set('/a', html('A', { text: 'The text of page A, which is long enough.' }));
    site.pages.set('/moved', { status: 301, headers: { location: '/a' } });
    site.pages.set('/print', html('Print', { text: 'Something else.', head: '<link rel="canonical" href="/a">' }));
    site.pages.set('/copy', html('A', { text: 'The text of page A, which is long enough.' }));
    const crawl = await crawled({ scan_depth: 2 });
    expect(outcomes(crawl)).toEqual([
      ['/', 'read'],
      ['/a', 'read'],
      ['/moved', 'duplicate'],
      ['/print', 'duplicate'],
      ['/copy', 'duplicate'],
    ]);
    expect(documentOf(crawl, '/print')).toBe(documentOf(crawl, '/a'));
  });

  it('names the document of the other page for duplicates that are found in later steps', async () => {
    publish({ '/': ['/x'] });
    site.pages.set('/x', html('X', { links: ['/y', '/late'], head: '<link rel="canonical" href="/y">' }));
    site.pages.set('/late', { status: 301, headers: { location: '/' } });
    const crawl = await crawled({ scan_depth: 3 });
    expect(outcomes(crawl).slice(2)).toEqual([
      ['/y', 'duplicate'],
      ['/late', 'duplicate'],
    ]);
    expect(documentOf(crawl, '/x')).toEqual(expect.any(String));
    expect(documentOf(crawl, '/y')).toBe(documentOf(crawl, '/x'));
    expect(documentOf(crawl, '/late')).toBe(documentOf(crawl, '/'));
  });

  it('reads few large pages in one step', async () => {
    // Decoded bytes count: sending all of them would take as long as a page may take, on a machine with other work.
    const headers = { 'content-type': 'image/png', 'content-encoding': 'gzip' };
    const image = { headers, body: gzipSync(Buffer.alloc(4 * 1024 * 1024)) };
    const paths = Array.from({ length: 20 }, (_, index) => `/${index}.png`);
    publish({ '/': paths });
    for (const path of paths) site.pages.set(path, image);
    const crawl = await crawled({ scan_depth: 2, knowledge_graph: null });
    const left_out = { unsupported_type: 20 };
    expect(crawl.crawl_stats).toMatchObject({ pages: 21, skipped: 20, left_out, failures: {} });
    const steps = (await api.events(`crawl-${crawl.id}`)).filter(({ type }) => type === 'PagesCrawled.v1');
    // Two are enough; eight are under way by then.
    for (const { data } of steps) expect(data.pages.length).toBeLessThanOrEqual(10);
  });

  it('records pages while a step continues with others', async () => {
    const paths = Array.from({ length: 63 }, (_, index) => `/${index}`);
    publish({ '/': paths, ...Object.fromEntries(paths.map((path) => [path, []])) });
    // As many as are visited at the same time.
    const held = new Map<string, ServerResponse>();
    for (const path of paths.slice(53, 61)) {
      site.pages.set(path, { answer: (_request, response) => void held.set(path, response) });
    }
    const answer = (path: string) =>
      held
        .get(path)!
        .writeHead(200, { 'content-type': 'text/html' })
        .end(html(`Page ${path}`));
    const { id } = await requested({ scan_depth: 2, max_pages: 100 });
    await eventually(async () => {
      const { json } = await api.call('GET', `/api/v1/documents?crawl=${id}&status=Ready&size=1`);
      expect([json.meta.total, held.size]).toEqual([54, 8]);
    });
    answer('/53');
    await eventually(async () => expect(await api.types(`crawl-${id}`)).toContain('PagesVisited.v1'));
    for (const path of paths.slice(54, 61)) answer(path);
    const crawl = await ended(id);
    expect(crawl.status).toBe('Completed');
    expect(outcomes(crawl)).toEqual(['/', ...paths].map((path) => [path, 'read']));
    expect(site.requests).toHaveLength(64);
  });

  it('is resumed after what a worker has recorded of a step before it died', async () => {
    const paths = ['/a', '/b', '/c'];
    publish({ '/': paths, '/a': [], '/b': ['/d'], '/c': [], '/d': [] });
    const id = newId();
    const entries = ['/', ...paths].map((path, index) => ({
      url: `${site.origin}${path}`,
      depth: index === 0 ? 1 : 2,
    }));
    const [start, visited] = entries.map((entry) => ({ ...unvisitedPage(entry), status: 200 }));
    const { organizationId } = api.api;
    const event = (type: `${string}.v1`, data: object) => {
      const made = logEvent({ ...data, scan: 1 }, type);
      return { ...made, metadata: { ...made.metadata, organizationId, at: new Date().toISOString() } };
    };
    await api.api.stores.platform.store.append(`crawl-${id}`, NO_EVENTS, [
      event('CrawlRequested.v1', { id, url: start!.url, knowledgeGraph: graph, scanDepth: 3, maxPages: 10 }),
      event('CrawlStarted.v1', { site: new URL(site.origin).host }),
      event('PagesCrawled.v1', { pages: [start], found: entries.slice(1), website: null }),
      event('PagesVisited.v1', { pages: [visited], found: [], website: null }),
    ]);
    const crawl = await ended(id);
    expect(outcomes(crawl).map(([path]) => path)).toEqual(['/', ...paths, '/d']);
    expect(site.requests).toEqual(['/b', '/c', '/d']);
  });

  it('ends when its graph is deleted meanwhile, and leaves no documents', async () => {
    const own = await api.newGraph();
    const asked = Promise.withResolvers<ServerResponse>();
    publish({ '/': ['/slow'] });
    site.pages.set('/slow', { answer: (_request, response) => asked.resolve(response) });
    const { id } = await requested({ scan_depth: 2, knowledge_graph: own });
    const response = await asked.promise;
    expect((await api.call('DELETE', `/api/v1/knowledge/${own}`)).status).toBe(204);
    response.writeHead(200, { 'content-type': 'text/html' }).end(html('Slow'));
    const crawl = await ended(id);
    expect(crawl.status).toBe('Failed: the knowledge graph was deleted');
    expect(crawl.crawled_urls).toMatchObject([{ document_id: null }, { document_id: null }]);
    await eventually(async () => {
      expect((await api.call('GET', `/api/v1/documents?crawl=${id}`)).json.meta.total).toBe(0);
    });
    expect((await rescanned(id)).status).toBe('Failed: the knowledge graph was deleted');
  });

  it('leaves out what asks for it: noindex, nofollow, and other types of content', async () => {
    publish({ '/': ['/noindex', '/header', '/nofollow', '/image', '/text'], '/x': [], '/y': [] });
    site.pages.set('/noindex', html('N', { head: '<meta name="robots" content="noindex">', links: ['/x'] }));
    site.pages.set('/header', { headers: { 'x-robots-tag': 'noindex' }, body: html('H') });
    site.pages.set('/nofollow', html('F', { head: '<meta name="robots" content="nofollow">', links: ['/y'] }));
    site.pages.set('/image', { headers: { 'content-type': 'image/png' }, body: 'no png' });
    site.pages.set('/text', { headers: { 'content-type': 'text/plain; charset=utf-8' }, body: 'Plain words' });
    const crawl = await crawled({ scan_depth: 3 });
    expect(Object.fromEntries(outcomes(crawl))).toEqual({
      '/': 'read',
      '/noindex': 'skipped',
      '/header': 'skipped',
      '/nofollow': 'read',
      '/image': 'skipped',
      '/text': 'read',
      '/x': 'read',
    });
  });

  it('reads pages in the encoding that they have', async () => {
    const body = Buffer.from(html('Käse', { text: 'Größe und Käse.' }), 'latin1');
    site.pages.set('/', { headers: { 'content-type': 'text/html; charset=iso-8859-1' }, body });
    expect((await crawled()).crawled_urls).toMatchObject([{ title: 'Käse' }]);
  });

  it.each([
    ['text/plain; charset=iso-8859-1', 'latin1', ''],
    ['text/markdown', 'utf16le', '\ufeff'],
  ] as const)('reads texts in the encoding that they have: %s', async (type, encoding, mark) => {
    const word = `Größe${encoding}`;
    site.pages.set('/', { headers: { 'content-type': type }, body: Buffer.from(`${mark}${word}: 5`, encoding) });
    const crawl = await crawled();
    await api.settled(documentOf(crawl, '/'));
    const query = new URLSearchParams({ query: word });
    // Under load, the index may not be up to date within the time of one request.
    await eventually(async () => {
      const found = await api.call('GET', `/api/v1/knowledge/${graph}/search?${query}`);
      expect(found.json.nodes).toMatchObject([{ summary: expect.stringContaining(word) }]);
    });
  });

  it('is listed by its filters', async () => {
    publish({ '/': [] });
    const crawl = await crawled();
    site.pages.set('/', { status: 500, body: 'broken' });
    const failed = await crawled();
    const list = async (query: object) => {
      const { json } = await api.call('GET', `${CRAWLS}?${new URLSearchParams({ size: '100', ...query })}`);
      return json.items.map(({ id }: Json) => id);
    };
    expect(await list({ status: 'failed' })).toContain(failed.id);
    expect(await list({ status: failed.status })).not.toContain(crawl.id);
    expect(await list({ url: `HTTP://127.0.0.1:${site.port}`, status: 'Completed' })).toContain(crawl.id);
    expect(await list({ url: 'https://elsewhere.example/' })).toEqual([]);
    expect(await list({ knowledge_graph: graph })).toContain(crawl.id);
    expect(await list({ knowledge_graph: newId() })).toEqual([]);
    expect(await api.call('DELETE', `${CRAWLS}/${crawl.id}`)).toMatchObject({ json: { is_active: false } });
    expect(await list({})).not.toContain(crawl.id);
    expect(await list({ is_active: 'false' })).toEqual([crawl.id]);
    expect(await api.call('POST', `${CRAWLS}/${crawl.id}/rescan`)).toMatchObject({ status: 409 });
  });

  it('is refused for what can never be fetched', async () => {
    const urls = [
      'file:///etc/passwd',
      'ftp://example.org/',
      'http://user:secret@example.org/',
      'http://127.1/',
      'http://2130706433/',
      'http://0x7f.1/',
      'http://[::ffff:7f00:1]/',
      'http://[64:ff9b::7f00:1]/',
      'http://169.254.169.254/latest/meta-data/',
      'https://example.org:22/',
      'nonsense',
    ];
    for (const url of urls) {
      const reply = await api.call('POST', CRAWLS, { url });
      expect({ url, ...reply }).toMatchObject({ url, status: 422, json: { detail: [{ loc: ['body', 'url'] }] } });
    }
    for (const [field, value] of Object.entries({ scan_depth: 4, max_pages: 301, knowledge_graph: newId() })) {
      const reply = await api.call('POST', CRAWLS, { url: `${site.origin}/`, [field]: value });
      expect({ field, ...reply }).toMatchObject({ field, status: 422, json: { detail: [{ loc: ['body', field] }] } });
    }
  });

  it('of another organization is answered byte for byte as a missing one', async () => {
    publish({ '/': [] });
    const { id } = await crawled();
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/cancel'],
      ['POST', '/rescan'],
      ['DELETE', ''],
    ] as const) {
      const foreign = await api.call(method, `${CRAWLS}/${id}${path}`, undefined, {}, api.foreignKey);
      const missing = await api.call(method, `${CRAWLS}/${newId()}${path}`, undefined, {}, api.foreignKey);
      expect(foreign.status).toBe(404);
      expect(foreign.bytes).toBe(missing.bytes);
    }
    const body = { url: `${site.origin}/`, knowledge_graph: graph };
    expect(await api.call('POST', CRAWLS, body, {}, api.foreignKey)).toMatchObject({ status: 422 });
    expect((await api.call('GET', CRAWLS, undefined, {}, api.foreignKey)).json.items).toEqual([]);
  });
});

describe('cancelling', () => {
  it('ends a scan in the middle of a step, and keeps the pages that it has recorded', async () => {
    publish({ '/': ['/slow'] });
    const asked = Promise.withResolvers<void>();
    const held: { end(): void }[] = [];
    const answer = (_request: unknown, response: { end(): void }) => {
      held.push(response);
      asked.resolve();
    };
    site.pages.set('/slow', { answer });
    const { id } = await requested({ scan_depth: 2 });
    await asked.promise;
    const cancelled = await api.call('POST', `${CRAWLS}/${id}/cancel`);
    expect(cancelled).toMatchObject({ status: 200, json: { status: 'Cancelled' } });
    held.forEach((response) => response.end());
    const again = await api.call('POST', `${CRAWLS}/${id}/cancel`);
    expect(again.json).toMatchObject({ status: 'Cancelled', crawl_stats: { pages: 1, documents: 1 } });
    await eventually(async () => {
      const reactors = await api.api.stores.platform.probes.find(({ name }) => name === 'reactors')?.check();
      expect(JSON.stringify(reactors)).toContain('"crawls":{"joined":true,"running":0,"held":0');
    });
    expect((await api.types(`crawl-${id}`)).at(-1)).toBe('CrawlCancelled.v1');
  });
});
