import { describe, expect, it } from 'vitest';

import type { CrawledPage, FoundUrl } from './crawl.ts';
import { DecidedPages } from './decided-pages.ts';
import { unvisitedPage } from './visit.ts';

const page = (path: string): CrawledPage => unvisitedPage({ url: `https://example.org${path}`, depth: 2 });
const pathsOf = (pages: readonly CrawledPage[] = []) => pages.map(({ url }) => new URL(url).pathname);
const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `/${from + index}`);

function decidedPages() {
  const found: FoundUrl[] = [];
  const pages = new DecidedPages(() => found);
  const decide = (path: string, write = Promise.resolve()): void => {
    pages.addWrite(write);
    pages.add(page(path));
  };
  return { found, pages, decide };
}

describe('decided pages', () => {
  it('are taken once 50 are written, in the order of their discovery', async () => {
    const { pages, decide } = decidedPages();
    const slow = Promise.withResolvers<void>();
    for (const path of numbered(0, 49)) decide(path);
    decide('/slow', slow.promise);
    for (const path of numbered(50, 60)) decide(path);
    await Promise.resolve();
    expect(await pages.takePart()).toBeNull();
    slow.resolve();
    await pages.allWritten();
    const part = await pages.takePart();
    expect(pathsOf(part?.pages)).toEqual([...numbered(0, 49), '/slow', ...numbered(50, 60)]);
    expect(pages).toMatchObject({ waiting: [], count: 60 });
    expect(await pages.takePart()).toBeNull();
  });

  it('stay while their documents are not written, and are taken with the next part', async () => {
    const { pages, decide } = decidedPages();
    const slow = Promise.withResolvers<void>();
    for (const path of numbered(0, 50)) decide(path);
    await pages.allWritten();
    decide('/slow', slow.promise);
    expect(pathsOf((await pages.takePart())?.pages)).toEqual(numbered(0, 50));
    expect(pathsOf(pages.waiting)).toEqual(['/slow']);
    slow.resolve();
    await pages.allWritten();
    expect(pathsOf(pages.take().pages)).toEqual(['/slow']);
  });

  it('are taken with all URLs that were discovered', async () => {
    const { found, pages, decide } = decidedPages();
    found.push({ url: 'https://example.org/a', depth: 2 });
    for (const path of numbered(0, 50)) decide(path);
    found.push({ url: 'https://example.org/b', depth: 3 });
    await pages.allWritten();
    const part = await pages.takePart();
    expect(part?.found.map(({ url }) => url)).toEqual(['https://example.org/a', 'https://example.org/b']);
    expect(found).toEqual([]);
  });

  it('are taken earlier if they do not fit into one append, once their documents are written', async () => {
    const { found, pages, decide } = decidedPages();
    const slow = Promise.withResolvers<void>();
    for (let at = 0; at < 1_000; at += 1) found.push({ url: `https://example.org/${'x'.repeat(300)}${at}`, depth: 2 });
    decide('/', slow.promise);
    const part = pages.takePart();
    slow.resolve();
    expect(await part).toMatchObject({ pages: [{ url: 'https://example.org/' }], found: { length: 1_000 } });
    decide('/next');
    await pages.allWritten();
    expect(await pages.takePart()).toBeNull();
  });

  it('report a document that cannot be written', async () => {
    const { pages, decide } = decidedPages();
    decide('/', Promise.reject(new Error('no store')));
    decide('/next');
    await expect(pages.allWritten()).rejects.toThrow('no store');
    expect(pages.take().pages).toEqual([]);
  });
});
