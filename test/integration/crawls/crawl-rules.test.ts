/** Crawls and the rules of a site: robots.txt, later scans, hostile sites, events, and the command line. */
import { describe, expect, it } from 'vitest';

import { accept } from '#libs/kernel/decider.ts';
import { newId } from '#libs/kernel/ids.ts';
import { runParley } from '#test/support/command-line.ts';
import { eventually } from '#test/support/eventually.ts';
import { keysIn, nodeWith } from '#test/support/redis-commands.ts';
import { html, type PageOfSite, type Website } from '#test/support/website.ts';

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

/** A robots.txt with long rules. */
function robotsOf(count: number, path: string): string {
  return ['User-agent: *', ...Array.from({ length: count }, (_, index) => `Disallow: /${index}${path}`)].join('\n');
}

describe('robots.txt', () => {
  const plain = { 'content-type': 'text/plain' };

  it('excludes pages, also in its 500th KiB', async () => {
    publish({ '/': ['/private/a', '/private/open', '/late'], '/private/open': [], '/late': [] });
    const filler = `# ${'x'.repeat(997)}\n`.repeat(500);
    const body = `User-agent: *\nDisallow: /private\nAllow: /private/open$\n${filler}Disallow: /late\n`;
    site.pages.set('/robots.txt', { headers: plain, body: body + filler.repeat(20) });
    const crawl = await crawled({ scan_depth: 2 });
    expect(outcomes(crawl)).toEqual([
      ['/', 'read'],
      ['/private/a', 'skipped'],
      ['/private/open', 'read'],
      ['/late', 'skipped'],
    ]);
    expect(site.requests).toEqual(['/', '/private/open']);
  });

  it.each([
    ['answers 500', { status: 500 }, /^Failed: robots.txt answered 500$/],
    [
      'excludes the start page',
      { headers: plain, body: 'User-agent: parley\nDisallow: /' },
      /^Failed: robots.txt does/,
    ],
    [
      'leads to a private address',
      { status: 302, headers: { location: 'http://10.0.0.1/' } },
      /^Failed: .*not a public/,
    ],
    ['has too many rules', { headers: plain, body: robotsOf(190, 'é'.repeat(1_300)) }, /^Failed: .* too many rules$/],
    ['has rules of half a MiB', { headers: plain, body: robotsOf(60, 'a'.repeat(8_000)) }, /^Completed$/],
    ['has rules that no URL matches', { headers: plain, body: robotsOf(4, 'é'.repeat(60_000)) }, /^Completed$/],
    ['answers 403', { status: 403 }, /^Completed$/],
    ['redirects in a circle', { status: 302, headers: { location: '/robots.txt' } }, /^Completed$/],
  ])('that %s', async (_name, robots, status) => {
    publish({ '/': [] });
    site.pages.set('/robots.txt', robots);
    expect((await crawled()).status).toMatch(status);
    expect(site.requests).toHaveLength(status.source.includes('Failed') ? 0 : 1);
  });

  it('asks for a delay, before which no other worker requests a page of the site', async () => {
    publish({ '/': [] });
    site.pages.set('/robots.txt', { headers: plain, body: 'User-agent: *\nCrawl-delay: 30' });
    await crawled();
    const { redis } = api.api.stores.platform;
    const reserved = await keysIn(redis, 'parley:site:*:next');
    expect(reserved).toHaveLength(1);
    expect(await nodeWith(redis, reserved[0]!).pexpiretime(reserved[0]!)).toBeGreaterThan(0);
    // For the other tests of the site.
    await nodeWith(redis, reserved[0]!).unlink(reserved[0]!);
  });

  it('names sitemaps, whose pages are read after those that the start page links to', async () => {
    publish({ '/': ['/a'], '/a': [], '/s1': [], '/s2': [] });
    const loc = (path: string) => `<loc>${site.origin}${path}</loc>`;
    const xml = { 'content-type': 'application/xml' };
    site.pages.set('/index.xml', {
      headers: xml,
      body: `<sitemapindex><sitemap>${loc('/one.xml')}</sitemap></sitemapindex>`,
    });
    site.pages.set('/one.xml', {
      headers: xml,
      body: `<urlset><url>${loc('/s1')}</url><url>${loc('/s2')}</url><url><loc>http://10.0.0.1/x</loc></url></urlset>`,
    });
    site.pages.set('/robots.txt', { headers: plain, body: `Sitemap: ${site.origin}/index.xml` });
    expect(outcomes(await crawled({ scan_depth: 2 })).map(([path]) => path)).toEqual(['/', '/a', '/s1', '/s2']);
  });
});

describe('a rescan', () => {
  it('changes the documents of changed pages, and deletes those of pages that are gone or no longer linked', async () => {
    const tagged = (path: string, links: readonly string[], version: string) =>
      site.pages.set(path, { headers: { etag: `"${version}"` }, body: html(`Page ${path}`, { links, text: version }) });
    tagged('/', ['/same', '/changed', '/gone', '/unlinked'], 'first');
    tagged('/same', ['/below'], 'the same');
    tagged('/changed', [], 'before');
    publish({ '/gone': [], '/unlinked': [], '/below': [] });
    const first = await crawled({ scan_depth: 3 });
    expect(first.crawl_stats.documents).toBe(6);
    for (const { document_id } of first.crawled_urls) await api.settled(document_id);

    tagged('/', ['/same', '/changed', '/gone'], 'second');
    tagged('/changed', [], 'after');
    site.pages.delete('/gone');
    site.requests.length = 0;
    const second = await rescanned(first.id);
    expect(outcomes(second)).toEqual([
      ['/', 'read'],
      ['/same', 'unchanged'],
      ['/changed', 'read'],
      ['/gone', 'gone'],
      ['/below', 'unchanged'],
    ]);
    expect(second.crawled_urls[1]).toMatchObject({ status: 304, title: 'Page /same' });
    expect(second).toMatchObject({ status: 'Completed', crawl_stats: { scan: 2, unchanged: 2, pages: 5 } });
    expect(await api.types(`document-${documentOf(first, '/same')}`)).not.toContain('DocumentChanged.v1');
    expect(await api.types(`document-${documentOf(first, '/below')}`)).not.toContain('DocumentChanged.v1');
    expect(await api.types(`document-${documentOf(first, '/changed')}`)).toContain('DocumentChanged.v1');
    for (const path of ['/gone', '/unlinked']) {
      expect((await api.get(documentOf(first, path))).status).toBe(404);
      await eventually(async () => {
        const withdrawn = (await api.events(`graph-${graph}`)).filter(({ type }) => type === 'FactsWithdrawn.v1');
        expect(withdrawn.map(({ data }) => data.documentId)).toContain(documentOf(first, path));
      });
    }
  });

  it('reads the page that a start page forwards to, although the start page says that it is unchanged', async () => {
    const forwarding = '<meta http-equiv=refresh content="0;url=/home">';
    site.pages.set('/', {
      answer: ({ headers }, response) =>
        headers['if-modified-since'] === undefined ? response.end(forwarding) : response.writeHead(304).end(),
    });
    const headers = { 'last-modified': 'Thu, 26 Nov 2026 10:00:00 GMT' };
    site.pages.set('/home', { headers, body: html('Home', { text: 'The former text of the page.' }) });
    const first = await crawled({});
    expect(first.crawl_stats.bytes).toBeGreaterThan(forwarding.length + 100);
    site.pages.set('/home', { headers, body: html('Home', { text: 'The later text of the page.' }) });
    const second = await rescanned(first.id);
    expect(second.crawled_urls).toMatchObject([{ outcome: 'read', title: 'Home' }]);
  });

  it('keeps documents that it could not read again', async () => {
    publish({ '/': ['/a'], '/a': [] });
    const first = await crawled({ scan_depth: 2 });
    site.pages.set('/a', { status: 503 });
    const second = await rescanned(first.id);
    expect(second.crawled_urls[1]).toMatchObject({ outcome: 'failed', document_id: documentOf(first, '/a') });
    expect((await api.get(documentOf(first, '/a'))).status).toBe(200);
  });

  it('keeps documents of a host whose robots.txt it could not read again', async () => {
    const origins = ['site.test', 'www.site.test'].map((host) => `http://${host}:${site.port}`);
    publish({ '/': [`${origins[1]}/a`], '/a': [] });
    const first = await crawled({ url: `${origins[0]}/`, scan_depth: 2 });
    expect(first.crawl_stats.documents).toBe(2);
    const answer: PageOfSite['answer'] = ({ headers }, response) =>
      response.writeHead(headers.host?.startsWith('www.') === true ? 500 : 404).end();
    site.pages.set('/robots.txt', { answer });
    const second = await rescanned(first.id);
    expect(second.crawled_urls[1]).toMatchObject({
      outcome: 'failed',
      document_id: first.crawled_urls[1].document_id,
      error: `${origins[1]}/a is on a server whose robots.txt cannot be read`,
    });
    expect((await api.get(first.crawled_urls[1].document_id)).status).toBe(200);
  });

  it('reads pages again whose documents were deleted or have failed', async () => {
    for (const path of ['/', '/deleted', '/failed', '/kept']) {
      const links = path === '/' ? ['/deleted', '/failed', '/kept'] : [];
      site.pages.set(path, { headers: { etag: '"1"' }, body: html(`Page ${path}`, { links }) });
    }
    const first = await crawled({ scan_depth: 2 });
    const [deleted, failed] = ['/deleted', '/failed'].map((path) => documentOf(first, path));
    expect((await api.call('DELETE', `/api/v1/documents/${deleted}`)).status).toBe(204);
    const context = {
      commandId: newId(),
      organizationId: api.api.organizationId,
      actor: { type: 'system', id: 'test' },
      at: new Date().toISOString(),
    } as const;
    const failure = { type: 'DocumentIngestionFailed.v1', data: { reason: 'It took too long' } } as const;
    await api.api.features.documents.run(context, failed!, () => accept(failure));
    expect((await api.get(failed!)).json.status).toBe('Failed: It took too long');
    const second = await rescanned(first.id);
    expect(second.crawled_urls.map(({ status }: Json) => status)).toEqual([304, 200, 200, 304]);
    for (const id of [deleted, failed]) expect((await api.settled(id!)).status).toBe('Ready');
  });

  it('keeps the pages below one that it could not read again', async () => {
    publish({ '/': ['/hub'], '/hub': ['/below'], '/below': [] });
    const first = await crawled({ scan_depth: 3 });
    site.pages.set('/hub', { status: 503 });
    for (const second of [await rescanned(first.id), await rescanned(first.id)]) {
      expect(outcomes(second)).toEqual([
        ['/', 'unchanged'],
        ['/hub', 'failed'],
        ['/below', 'unchanged'],
      ]);
    }
    expect((await api.get(documentOf(first, '/below'))).status).toBe(200);
  });

  it('is refused while a scan is under way', async () => {
    const held = Promise.withResolvers<{ end(): void }>();
    site.pages.set('/', { answer: (_request, response) => held.resolve(response) });
    const { id } = await requested({});
    const reply = await api.call('POST', `${CRAWLS}/${id}/rescan`);
    expect(reply).toMatchObject({ status: 409, json: { code: 'crawl_running' } });
    (await held.promise).end();
    await ended(id);
  });
});

describe('a hostile site', () => {
  const gzip = { 'content-type': 'text/html', 'content-encoding': 'gzip' };
  it.each<[string, Parameters<Website['pages']['set']>[1], RegExp]>([
    ['redirects to a private address', { status: 302, headers: { location: 'http://169.254.169.254/' } }, /not public/],
    ['redirects to a file', { status: 302, headers: { location: 'file:///etc/passwd' } }, /neither http/],
    ['redirects in a circle', { status: 302, headers: { location: '/' } }, /in a circle/],
    ['answers 500', { status: 500 }, /answered 500/],
    ['is not there', { status: 404 }, /does not exist/],
    ['is no gzip', { headers: gzip, body: 'not gzip' }, /does not decode/],
    ['closes the connection', { answer: (request) => request.socket.destroy() }, /ended before/],
    ['is not HTTP', { answer: (request) => request.socket.end('nonsense\r\n\r\n') }, /not valid HTTP|ended before/],
    ['is an image', { headers: { 'content-type': 'image/png' } }, /neither a page nor text/],
    ['is empty', { body: '' }, /holds no text/],
    [
      'never ends',
      {
        answer: (_request, response) => {
          response.setHeader('content-type', 'text/html');
          const write = (): void =>
            void (response.write('x'.repeat(65_536)) ? setImmediate(write) : response.once('drain', write));
          response.on('close', () => response.removeAllListeners('drain'));
          write();
        },
      },
      /larger than 5 MiB/,
    ],
  ])('that %s ends the crawl with a status that says so', async (name, page, why) => {
    site.pages.set('/', page);
    const crawl = await crawled({ scan_depth: 2 });
    expect(crawl.status).toMatch(/^Failed: /);
    expect(crawl.status).toMatch(why);
    expect(crawl.error_details).toBe(crawl.status.slice('Failed: '.length));
    // What has arrived counts, also of a response that failed.
    const arrived = name === 'never ends' ? 5 * 1024 * 1024 : 0;
    expect(crawl.crawl_stats.bytes).toBeGreaterThanOrEqual(arrived);
  });

  it('has 50,000 nested tags, a wrong charset and JSON-LD with __proto__', async () => {
    const ld = '<script type="application/ld+json">{"@type":"Person","name":"Eve","__proto__":{"x":1}}</script>';
    const nested = '<div>'.repeat(50_000);
    const body = `<html><head><title>Deep</title>${ld}</head><body>${nested}Words of the page.</body></html>`;
    site.pages.set('/', { headers: { 'content-type': 'text/html; charset=nonsense' }, body });
    const crawl = await crawled();
    expect(crawl.status).toBe('Completed');
    expect((await api.settled(documentOf(crawl, '/')))['status']).toBe('Ready');
    expect(Reflect.get({}, 'x')).toBeUndefined();
  });
});

describe('the events of a crawl', () => {
  it('show its progress until it has ended, and are resumed', { timeout: 30_000 }, async () => {
    publish({ '/': ['/a'], '/a': [] });
    const { id } = await crawled({ scan_depth: 2 });
    const headers = { authorization: api.api.rootKey, accept: 'text/event-stream' };
    const follow = async (after: number) => {
      const response = await fetch(`${origin}${CRAWLS}/${id}/events?after=${after}`, { headers });
      if (response.status !== 200 || response.body === null) return { status: response.status, types: [] as string[] };
      let text = '';
      const decoder = new TextDecoder();
      for await (const chunk of response.body) {
        text += decoder.decode(chunk, { stream: true });
        if (text.includes('"crawl.completed"')) break;
      }
      return { status: 200, types: [...text.matchAll(/"type":"(crawl\.\w+)"/g)].map(([, type = '']) => type) };
    };
    const { types } = await follow(0);
    expect([types[0], types[1], types.at(-1)]).toEqual(['crawl.created', 'crawl.started', 'crawl.completed']);
    expect(types).toContain('crawl.progress');
    expect((await follow(2)).types).toEqual(types.slice(2));
    expect((await follow(types.length)).status).toBe(204);
  });
});

describe('the command line', () => {
  it('crawls into a graph that it creates, and searches it', { timeout: 60_000 }, async () => {
    publish({ '/': ['/lighthouse'] });
    site.pages.set('/lighthouse', html('Lighthouse', { text: 'The lighthouse of Bremerhaven stands in the sea.' }));
    const { eventStore, redis } = api.api.stores;
    const environment = {
      EVENTSTORE_URL: eventStore.url,
      REDIS_URL: redis.url,
      FETCH_ALLOW_HOSTS: `127.0.0.1:${site.port}`,
    };
    const run = (...args: string[]) => runParley(environment, ...args);
    const crawl = await run('crawl', `${site.origin}/`, '--graph', 'Coast', '--json');
    expect(crawl).toMatchObject({ exitCode: 0, stderr: '' });
    expect(JSON.parse(crawl.stdout)).toMatchObject({ status: 'Completed', documents: 2, ready: 2, not_learnt: 0 });
    const found = await run('search', 'Coast', 'lighthouse', 'bremerhaven');
    const [first] = found.stdout.split('\n\n');
    expect(first).toBe(`Lighthouse\n  The lighthouse of Bremerhaven stands in the sea.\n  ${site.origin}/lighthouse`);

    expect(await run('search', 'Mountains', 'x')).toMatchObject({
      exitCode: 1,
      stderr: 'parley: there is no knowledge graph Mountains\n',
    });
    for (const url of ['file:///etc/passwd', 'http://10.0.0.1/']) {
      const refused = await run('crawl', url, '--graph', 'Mountains');
      expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/^parley: <url>: /) });
    }
    expect((await api.call('GET', '/api/v1/knowledge?name=Mountains')).json.items).toEqual([]);
    // A key of these stores would be shown to whatever the URL names.
    const elsewhere = { ...environment, PARLEY_URL: origin };
    for (const command of [
      ['crawl', `${site.origin}/`, '--graph', 'Coast'],
      ['report', 'lighthouses', '--graph', 'Coast'],
    ])
      expect(await runParley(elsewhere, ...command)).toMatchObject({
        exitCode: 1,
        stderr: expect.stringMatching(/^parley: PARLEY_URL names another Parley: set PARLEY_KEY/),
      });
    // A Parley with a URL judges by its own settings, not by those of the command.
    const remote = { PARLEY_URL: origin, PARLEY_KEY: api.api.rootKey };
    const there = await runParley(remote, 'crawl', `${site.origin}/`, '--graph', 'Coast', '--json');
    expect(there).toMatchObject({ exitCode: 0, stderr: '' });
    site.pages.clear();
    const failed = await run('crawl', `${site.origin}/`, '--graph', 'Coast');
    expect(failed).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('parley: Failed: ') });
  });
});
