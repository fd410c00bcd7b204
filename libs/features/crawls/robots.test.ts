import { describe, expect, it } from 'vitest';

import { allows, parseRobots, robotsTag } from './robots.ts';

const site = 'https://example.org';

function allowed(text: string, path: string): boolean {
  return allows({ problem: null, ...parseRobots(text).rules }, `${site}${path}`);
}

describe('robots.txt', () => {
  it('is read as the examples of RFC 9309 say', () => {
    const example = [
      'User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/',
      'User-Agent: foobot\nDisallow: /\nAllow: /example/page.html\nAllow: /example/allowed.gif',
      'User-Agent: barbot\nUser-Agent: bazbot\nDisallow: /example/page.html',
    ].join('\n\n');
    expect(allowed(example, '/example/page.html')).toBe(false);
    expect(allowed(example, '/a.gif')).toBe(false);
    expect(allowed(example, '/a.gif?x')).toBe(true);
    expect(allowed(example, '/publications/a')).toBe(true);
    // Longest match: 5.2 of the RFC.
    const longest = 'User-Agent: *\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif';
    expect(allowed(longest, '/example/page/disallowed.gif')).toBe(false);
    expect(allowed(longest, '/example/page/other')).toBe(true);
  });

  it('has groups: those for Parley together, else those for all', () => {
    const text = 'User-agent: *\nDisallow: /\n\nUser-agent: PARLEY/1.0\nDisallow: /a\nUser-agent: parley\nDisallow: /b';
    expect(allowed(text, '/c')).toBe(true);
    expect(allowed(text, '/a')).toBe(false);
    expect(allowed(text, '/b')).toBe(false);
    expect(allowed('User-agent: parleybot\nDisallow: /', '/')).toBe(true);
    expect(allowed('User-agent: parley\nUser-agent: other\nDisallow: /x', '/x')).toBe(false);
    expect(allowed('User-agent: parley\nSitemap: https://a.example\nUser-agent: other\nDisallow: /x', '/x')).toBe(
      false,
    );
    expect(allowed('User-agent: parley\n\nUser-agent: *\nDisallow: /x', '/x')).toBe(false);
    expect(allowed('User-agent: parley\nDisallow:\n\nUser-agent: *\nDisallow: /x', '/x')).toBe(true);
  });

  it.each([
    ['Disallow:', '/a', true],
    ['Disallow: /\nAllow: /', '/a', true],
    ['Disallow: /a%2fb', '/a%2Fb', false],
    ['Disallow: /a%7Eb', '/a~b', false],
    ['Disallow: /ä', '/%C3%A4', false],
    ['Disallow: /*?session=', '/x?session=1', false],
    ['Disallow: /*a*b$', '/xaxxbxb', false],
    ['Disallow: /*a*b$', '/xaxxbx', true],
    ['Disallow: /*a*a$', '/xa', true],
    ['Disallow: /a$', '/ab', true],
    ['Disallow: private', '/private/x', false],
    [' DISALLOW : /x # comment', '/x', false],
    ['Disallow /x\nnonsense', '/x', true],
  ])('with %j answers %s', (rules, path, isAllowed) => {
    expect(allowed(`\uFEFFUser-agent: *\r\n${rules}`, path)).toBe(isAllowed);
  });

  it('that cannot be read allows nothing', () => {
    expect(allows({ problem: 'answered 500', allow: ['/'], disallow: [] }, `${site}/`)).toBe(false);
  });

  it('names several robots for one group, also with a delay between them', () => {
    const { rules } = parseRobots('User-agent: parley\nCrawl-delay: 2\nUser-agent: other\nDisallow: /a');
    expect(rules).toEqual({ allow: [], disallow: ['/a'], crawlDelayMs: 2_000 });
  });

  it('states a delay, up to 30 seconds, and sitemaps', () => {
    const delay = (value: string) => parseRobots(`User-agent: *\nCrawl-delay: ${value}`).rules.crawlDelayMs;
    expect([delay('1.5'), delay('3600'), delay('soon'), delay('-1'), delay('')]).toEqual([
      1_500,
      30_000,
      null,
      null,
      null,
    ]);
    expect(parseRobots('Sitemap: https://a.example/1\nSitemap: /2').sitemaps).toEqual(['https://a.example/1', '/2']);
  });

  it('is matched in linear time: this would not end with backtracking', () => {
    const text = `User-agent: *\n${`Disallow: /${'*a'.repeat(500)}b\n`.repeat(400)}`;
    expect(allowed(text, `/${'a'.repeat(2_000)}`)).toBe(true);
  });
});

it.each([
  ['', true, true],
  ['noindex, nofollow', false, false],
  ['none', false, false],
  ['otherbot: noindex, nofollow', true, true],
  ['otherbot: noindex, parley: nofollow', true, false],
  ['Parley: NOINDEX', false, true],
  ['unavailable_after: 25 Jun 2030 15:00:00 PST, noindex', false, true],
])('the header X-Robots-Tag %j', (header, isIndexed, isFollowed) => {
  expect(robotsTag(header)).toEqual({ isIndexed, isFollowed });
});
