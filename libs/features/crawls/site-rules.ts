import { admitText } from '#libs/kernel/text.ts';
import { type Fetcher, FetchError, type OpenedResponse } from '#libs/platform/fetch/index.ts';

import type { Robots } from './crawl.ts';
import { normalUrl, siteOf } from './frontier.ts';
import { MAX_ROBOTS_BYTES, parseRobots } from './robots.ts';

const TIMEOUT_MS = 15_000;
/** As JSON: an append may have 1 MiB. Only rules in other alphabets than ours can have more. */
const MAX_RULES_BYTES = 900_000;
const MAX_SITEMAP_BYTES = 10 * 1024 * 1024;
/** Files, those of an index included. */
const MAX_SITEMAPS = 5;
const SITEMAPS_TIMEOUT_MS = 20_000;

export interface SiteRules {
  readonly robots: Robots;
  /** URLs of sitemaps. */
  readonly sitemaps: readonly string[];
}

/**
 * Reads the robots.txt of an origin as RFC 9309 says: 4xx and endless redirects allow everything; 5xx and a server that
 * cannot be reached allow nothing.
 *
 * @throws the reason of `signal`
 */
export async function readSiteRules(fetcher: Fetcher, origin: string, signal: AbortSignal): Promise<SiteRules> {
  const nothing = { allow: [], disallow: [], crawlDelayMs: null };
  const result = (problem: string | null): SiteRules => ({ robots: { origin, problem, ...nothing }, sitemaps: [] });
  try {
    const url = `${origin}/robots.txt`;
    // The rest of a larger file is not read: it has no limit of its own.
    const response = await fetcher.open(url, { maxBytes: 1024 ** 3, timeoutMs: TIMEOUT_MS, signal });
    if (response.status >= 500) {
      response.body.destroy();
      return result(`robots.txt answered ${response.status}`);
    }
    if (response.status < 200 || response.status > 299) {
      response.body.destroy();
      return result(null);
    }
    const { rules, sitemaps } = parseRobots(await firstLines(response));
    if (Buffer.byteLength(JSON.stringify(rules)) > MAX_RULES_BYTES) return result('robots.txt has too many rules');
    return { robots: { origin, problem: null, ...rules }, sitemaps };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof FetchError)) throw error;
    if (error.reason === 'too_many_redirects' || error.reason === 'redirect_loop') return result(null);
    return result(`robots.txt cannot be read: ${error.message}`);
  }
}

async function firstLines({ body }: OpenedResponse): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_ROBOTS_BYTES) break;
  }
  const text = new TextDecoder().decode(Buffer.concat(chunks).subarray(0, MAX_ROBOTS_BYTES));
  return bytes > MAX_ROBOTS_BYTES ? text.slice(0, text.lastIndexOf('\n') + 1) : text;
}

/**
 * URLs of a site that its sitemaps list, in their order. Sitemaps are hints: what is wrong with one is passed over.
 */
export async function readSitemaps(
  fetcher: Fetcher,
  sitemaps: readonly string[],
  { site, signal, limit }: { readonly site: string; readonly signal: AbortSignal; readonly limit: number },
): Promise<string[]> {
  const waiting = [...sitemaps];
  const seen = new Set<string>();
  const urls: string[] = [];
  const until = performance.now() + SITEMAPS_TIMEOUT_MS;
  while (waiting.length > 0 && seen.size < MAX_SITEMAPS && urls.length < limit) {
    const url = normalUrl(waiting.shift() ?? '');
    if (url === null || siteOf(url) !== site || seen.has(url)) continue;
    seen.add(url);
    const timeoutMs = until - performance.now();
    if (timeoutMs <= 0) break;
    const { text, locations } = await readSitemap(fetcher, url, { timeoutMs, signal });
    if (/<sitemapindex[\s>]/.test(text)) waiting.push(...locations);
    else urls.push(...locations.slice(0, limit - urls.length));
  }
  return urls;
}

async function readSitemap(
  fetcher: Fetcher,
  url: string,
  options: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<{ readonly text: string; readonly locations: readonly string[] }> {
  try {
    const { status, body } = await fetcher.fetch(url, { ...options, maxBytes: MAX_SITEMAP_BYTES });
    const text = status === 200 ? new TextDecoder().decode(body) : '';
    const isXml = text.trimStart().startsWith('<');
    const locations = isXml
      ? [...text.matchAll(/<loc>([^<]*)<\/loc>/g)].map(([, location = '']) => unescapeXml(location.trim()))
      : text.split(/\s+/);
    return { text: isXml ? admitText(text, 1_000) : '', locations: locations.filter((one) => /^https?:/.test(one)) };
  } catch (error) {
    options.signal.throwIfAborted();
    if (error instanceof FetchError) return { text: '', locations: [] };
    throw error;
  }
}

function unescapeXml(text: string): string {
  return text.replaceAll('&apos;', "'").replaceAll('&quot;', '"').replaceAll('&amp;', '&');
}
