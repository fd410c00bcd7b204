import { admitText } from '#libs/kernel/text.ts';

import type { Robots } from './crawl.ts';

/** Bytes of a robots.txt that are read: what RFC 9309 demands at least. */
export const MAX_ROBOTS_BYTES = 500 * 1024;
/** Of URLs that are fetched. */
const MAX_URL = 8_192;
const MAX_CRAWL_DELAY_MS = 30_000;
const MAX_SITEMAPS = 50;
/** The product token that sites name Parley by. */
const PRODUCT = 'parley';

export type Rules = Pick<Robots, 'allow' | 'disallow' | 'crawlDelayMs'>;

interface Group extends Rules {
  allow: string[];
  disallow: string[];
  crawlDelayMs: number | null;
}

/**
 * Reads a robots.txt as RFC 9309 says: the groups for Parley together, else those for all. A `crawl-delay` counts up to
 * 30 seconds. Lines that are not understood are passed over.
 */
export function parseRobots(text: string): { readonly rules: Rules; readonly sitemaps: readonly string[] } {
  const own: Group = { allow: [], disallow: [], crawlDelayMs: null };
  const common: Group = { allow: [], disallow: [], crawlDelayMs: null };
  const sitemaps: string[] = [];
  let groups = new Set<Group>();
  let isOwnNamed = false;
  let isAfterRules = true;
  for (const line of text.replace(/^\uFEFF/, '').split(/[\r\n]+/)) {
    const [, key = '', value = ''] = /^\s*([\w-]+)\s*:(.*)$/.exec(line.split('#', 1)[0] ?? '') ?? [];
    const given = value.trim();
    switch (key.toLowerCase()) {
      case 'user-agent': {
        if (isAfterRules) groups = new Set();
        isAfterRules = false;
        const product = /^[a-z_-]+/i.exec(given)?.[0].toLowerCase();
        if (product === PRODUCT) groups.add(own);
        if (given === '*') groups.add(common);
        isOwnNamed ||= product === PRODUCT;
        break;
      }
      case 'allow':
      case 'disallow': {
        isAfterRules = true;
        const list = key.toLowerCase() === 'allow' ? 'allow' : 'disallow';
        const pattern = normalPattern(given);
        const isMatchable = given !== '' && pattern.replaceAll('*', '').length <= MAX_URL;
        if (isMatchable) for (const group of groups) group[list].push(pattern);
        break;
      }
      case 'crawl-delay': {
        // Not a rule of RFC 9309, so it does not end the names of a group.
        const delayMs = Math.round(Number(given) * 1_000);
        if (given === '' || !(delayMs >= 0)) break;
        for (const group of groups) group.crawlDelayMs = Math.min(delayMs, MAX_CRAWL_DELAY_MS);
        break;
      }
      case 'sitemap':
        if (sitemaps.length < MAX_SITEMAPS) sitemaps.push(given);
    }
  }
  return { rules: isOwnNamed ? own : common, sitemaps };
}

/** Whether a URL may be requested: the longest pattern decides, and `allow` before `disallow`. */
export function allows(
  { problem, allow, disallow }: Pick<Robots, 'problem' | 'allow' | 'disallow'>,
  url: string,
): boolean {
  if (problem !== null) return false;
  const { pathname, search } = new URL(url);
  const path = normalOctets(pathname + search);
  return longestMatch(allow, path) >= longestMatch(disallow, path);
}

/** Rules of `X-Robots-Tag` whose value has a colon. */
const RULES_WITH_VALUES = /^(?:unavailable_after|max-snippet|max-image-preview|max-video-preview)$/;

/** The rule of the header `X-Robots-Tag` for Parley. The name of a robot counts for all rules up to the next one. */
export function robotsTag(header: string): { readonly isIndexed: boolean; readonly isFollowed: boolean } {
  const rules = new Set<string>();
  let isOwn = true;
  for (const part of header.toLowerCase().split(',')) {
    const [, name, rest = ''] = /^\s*([\w-]+)\s*:(.*)$/.exec(part) ?? [];
    const isRobot = name !== undefined && !RULES_WITH_VALUES.test(name);
    if (isRobot) isOwn = name === PRODUCT;
    if (isOwn) rules.add((isRobot ? rest : part).trim());
  }
  const has = (rule: string) => rules.has(rule) || rules.has('none');
  return { isIndexed: !has('noindex'), isFollowed: !has('nofollow') };
}

function longestMatch(patterns: readonly string[], path: string): number {
  let longest = -1;
  for (const pattern of patterns) if (pattern.length > longest && matches(pattern, path)) longest = pattern.length;
  return longest;
}

/** `*` stands for any text, and a final `$` for the end. In linear time: each part is taken where it first occurs. */
function matches(pattern: string, path: string): boolean {
  const isWhole = pattern.endsWith('$');
  const [first = '', ...parts] = (isWhole ? pattern.slice(0, -1) : pattern).split('*');
  if (!path.startsWith(first)) return false;
  let at = first.length;
  const last = isWhole ? parts.pop() : undefined;
  for (const part of parts) {
    const found = path.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  if (!isWhole) return true;
  return last === undefined ? at === path.length : path.length - last.length >= at && path.endsWith(last);
}

function normalPattern(pattern: string): string {
  const octets = normalOctets(
    pattern.replace(/\*+/g, '*').replace(/[^\x21-\x7e]+/g, (text) => encodeURI(admitText(text))),
  );
  return octets.startsWith('/') || octets.startsWith('*') ? octets : `/${octets}`;
}

/** The form in which RFC 9309 compares paths: only what must be is percent-encoded, in upper case. */
function normalOctets(path: string): string {
  return path.replace(/%[\da-f]{2}/gi, (encoded) => {
    const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
    return /[\w.~-]/.test(character) ? character : encoded.toUpperCase();
  });
}
