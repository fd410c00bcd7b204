import { gunzipSync } from 'node:zlib';

import { decodeHTML } from 'entities';

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
    const { isIndex, locations } = await readSitemap(fetcher, url, { timeoutMs, signal });
    if (isIndex) waiting.push(...locations);
    else urls.push(...locations.slice(0, limit - urls.length));
  }
  return urls;
}

export interface Sitemap {
  /** Whether the locations are those of sitemaps. */
  readonly isIndex: boolean;
  /** Absolute URLs. */
  readonly locations: readonly string[];
}

const NOTHING: Sitemap = { isIndex: false, locations: [] };

async function readSitemap(
  fetcher: Fetcher,
  url: string,
  options: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<Sitemap> {
  try {
    const { status, body, url: found } = await fetcher.fetch(url, { ...options, maxBytes: MAX_SITEMAP_BYTES });
    return status === 200 ? parseSitemap(body, found) : NOTHING;
  } catch (error) {
    options.signal.throwIfAborted();
    if (error instanceof FetchError) return NOTHING;
    throw error;
  }
}

/** Names may have a prefix, URLs may be relative, in CDATA and with any reference to a character, and files may be compressed. */
export function parseSitemap(bytes: Uint8Array, url: string): Sitemap {
  const text = new TextDecoder().decode(uncompressed(bytes));
  const isXml = text.trimStart().startsWith('<');
  const written = isXml
    ? [...text.matchAll(/<(?:[\w-]{1,30}:)?loc(?:\s[^<>]{0,200})?>\s*(?:<!\[CDATA\[([^<\]]*)\]\]>|([^<]*))/g)].map(
        ([, verbatim, escaped = '']) => verbatim ?? decodeHTML(escaped),
      )
    : text.split(/\s+/);
  const locations = written.flatMap((one) => {
    const given = one.trim();
    if (given === '' || (!isXml && !/^https?:/i.test(given))) return [];
    return URL.parse(given, url)?.href ?? [];
  });
  return { isIndex: isXml && /<(?:[\w-]{1,30}:)?sitemapindex[\s>]/.test(text), locations };
}

function uncompressed(bytes: Uint8Array): Uint8Array {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  try {
    return gunzipSync(bytes, { maxOutputLength: MAX_SITEMAP_BYTES });
  } catch {
    return new Uint8Array();
  }
}
