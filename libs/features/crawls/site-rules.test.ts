import { gzipSync } from 'node:zlib';

import { expect, it, vi } from 'vitest';

import { parseSitemap } from './site-rules.ts';

const URL_OF_SITEMAP = 'https://example.org/maps/sitemap.xml';
const page = 'https://example.org/a?b=1&c=2';

it.each([
  ['entities', '<urlset><url><loc> https://example.org/a?b=1&amp;c=2 </loc></url></urlset>'],
  ['numbers of characters', '<urlset><url><loc>https://example.org/a?b=1&#38;c&#x3D;2</loc></url></urlset>'],
  ['CDATA', '<urlset><url><loc><![CDATA[https://example.org/a?b=1&c=2]]></loc></url></urlset>'],
  [
    'a prefix',
    '<sm:urlset xmlns:sm="x"><sm:url><sm:loc>https://example.org/a?b=1&amp;c=2</sm:loc></sm:url></sm:urlset>',
  ],
  ['a relative URL', '\uFEFF<?xml version="1.0"?><urlset><url><loc>/a?b=1&amp;c=2</loc></url></urlset>'],
  ['text', 'https://example.org/a?b=1&c=2\nnot a URL'],
])('reads a sitemap with %s', async (_, text) => {
  const sitemap = { isIndex: false, locations: [page] };
  expect(await parseSitemap(Buffer.from(text), URL_OF_SITEMAP, 10)).toEqual(sitemap);
  expect(await parseSitemap(gzipSync(text), URL_OF_SITEMAP, 10)).toEqual(sitemap);
});

it('reads an index with a prefix, and nothing of what is damaged', async () => {
  const index = '<s:sitemapindex><s:sitemap><s:loc>b.xml</s:loc></s:sitemap></s:sitemapindex>';
  expect(await parseSitemap(Buffer.from(index), URL_OF_SITEMAP, 10)).toEqual({
    isIndex: true,
    locations: ['https://example.org/maps/b.xml'],
  });
  const damaged = gzipSync(index).fill(0xff, 12, 20);
  expect((await parseSitemap(damaged, URL_OF_SITEMAP, 10)).locations).toEqual([]);
});

it('reads as many URLs as a crawl takes, of a sitemap that is cut, and not what follows them', async () => {
  const urls = Array.from({ length: 5_000 }, (_, at) => `<url><loc>/${at}</loc></url>`).join('');
  const locations = ['https://example.org/0', 'https://example.org/1', 'https://example.org/2'];
  const parse = vi.spyOn(URL, 'parse');
  for (const bytes of [Buffer.from(`<urlset>${urls}`), gzipSync(`<urlset>${urls}</urlset>`).subarray(0, 6_000)])
    expect(await parseSitemap(bytes, URL_OF_SITEMAP, 3)).toEqual({ isIndex: false, locations });
  expect(parse).toHaveBeenCalledTimes(6);
});
