import { Readable } from 'node:stream';
import { constants, createGunzip } from 'node:zlib';

import { decodeHTML } from 'entities';

import { type Fetcher, FetchError } from '#libs/platform/fetch/index.ts';

import type { Robots } from './crawl.ts';
import { normalUrl, siteOf } from './frontier.ts';
import { MAX_ROBOTS_BYTES, parseRobots } from './robots.ts';

const TIMEOUT_MS = 15_000;
/** As JSON: an append may have 1 MiB. Only rules in other alphabets than ours can have more. */
const MAX_RULES_BYTES = 900_000;
/** Of a larger file, the first part is read: only the limits of that part count. */
const MAX_RESPONSE_BYTES = 1024 ** 3;
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
    const response = await fetcher.open(url, { maxBytes: MAX_RESPONSE_BYTES, timeoutMs: TIMEOUT_MS, signal });
    if (response.status >= 500) {
      response.body.destroy();
      return result(`robots.txt answered ${response.status}`);
    }
    if (response.status < 200 || response.status > 299) {
      response.body.destroy();
      return result(null);
    }
    const { rules, sitemaps } = parseRobots(await firstLines(response.body));
    if (Buffer.byteLength(JSON.stringify(rules)) > MAX_RULES_BYTES) return result('robots.txt has too many rules');
    return { robots: { origin, problem: null, ...rules }, sitemaps };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof FetchError)) throw error;
    if (error.reason === 'too_many_redirects' || error.reason === 'redirect_loop') return result(null);
    return result(`robots.txt cannot be read: ${error.message}`);
  }
}

async function firstLines(body: Readable): Promise<string> {
  const bytes = await firstBytes(body, MAX_ROBOTS_BYTES + 1);
  const text = new TextDecoder().decode(bytes.subarray(0, MAX_ROBOTS_BYTES));
  return bytes.length > MAX_ROBOTS_BYTES ? text.slice(0, text.lastIndexOf('\n') + 1) : text;
}

/** At most the first bytes; the stream is ended then. */
async function firstBytes(stream: Readable, max: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= max) break;
  }
  return Buffer.concat(chunks).subarray(0, max);
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
    const options = { timeoutMs, signal, limit: limit - urls.length };
    const { isIndex, locations } = await readSitemap(fetcher, url, options);
    (isIndex ? waiting : urls).push(...locations);
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
  { limit, ...options }: { readonly timeoutMs: number; readonly signal: AbortSignal; readonly limit: number },
): Promise<Sitemap> {
  try {
    const { status, body, url: found } = await fetcher.open(url, { ...options, maxBytes: MAX_RESPONSE_BYTES });
    if (status === 200) return await parseSitemap(await firstBytes(body, MAX_SITEMAP_BYTES), found, limit);
    body.destroy();
    return NOTHING;
  } catch (error) {
    options.signal.throwIfAborted();
    if (error instanceof FetchError) return NOTHING;
    throw error;
  }
}

const LOCATION = /<(?:[\w-]{1,30}:)?loc(?:\s[^<>]{0,200})?>\s*(?:<!\[CDATA\[([^<\]]*)\]\]>|([^<]*))/g;
const ROOT = /<(?:[\w-]{1,30}:)?(sitemapindex|urlset)[\s>]/;

/**
 * Names may have a prefix, URLs may be relative, in CDATA and with any reference to a character, and files may be
 * compressed. The file may be cut.
 */
export async function parseSitemap(bytes: Uint8Array, url: string, limit: number): Promise<Sitemap> {
  const text = new TextDecoder().decode(await uncompressed(bytes));
  const isXml = text.trimStart().startsWith('<');
  const locations: string[] = [];
  for (const [written, verbatim, escaped = ''] of text.matchAll(isXml ? LOCATION : /\S+/g)) {
    if (locations.length >= limit) break;
    const given = isXml ? (verbatim ?? decodeHTML(escaped)).trim() : written;
    const location = given !== '' && (isXml || /^https?:/i.test(given)) ? URL.parse(given, url) : null;
    if (location !== null) locations.push(location.href);
  }
  return { isIndex: isXml && ROOT.exec(text)?.[1] === 'sitemapindex', locations };
}

/** Of a file that is cut, its first part; of a damaged one, nothing. */
async function uncompressed(bytes: Uint8Array): Promise<Uint8Array> {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  const gunzip = createGunzip({ finishFlush: constants.Z_SYNC_FLUSH });
  try {
    return await firstBytes(Readable.from([bytes]).pipe(gunzip), MAX_SITEMAP_BYTES);
  } catch {
    return new Uint8Array();
  }
}
