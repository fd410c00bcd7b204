import { gzipSync } from 'node:zlib';

import { expect, it } from 'vitest';

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
])('reads a sitemap with %s', (_, text) => {
  expect(parseSitemap(Buffer.from(text), URL_OF_SITEMAP)).toEqual({ isIndex: false, locations: [page] });
  expect(parseSitemap(gzipSync(text), URL_OF_SITEMAP).locations).toEqual([page]);
});

it('reads an index with a prefix, and nothing of what is damaged', () => {
  const index = '<s:sitemapindex><s:sitemap><s:loc>b.xml</s:loc></s:sitemap></s:sitemapindex>';
  expect(parseSitemap(Buffer.from(index), URL_OF_SITEMAP)).toEqual({
    isIndex: true,
    locations: ['https://example.org/maps/b.xml'],
  });
  expect(parseSitemap(gzipSync(index).subarray(0, 20), URL_OF_SITEMAP).locations).toEqual([]);
});
