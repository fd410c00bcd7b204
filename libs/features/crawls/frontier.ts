/** Which pages a scan takes next. Pure: it depends on the state of the crawl alone. */
import { type Crawl, type CrawledPage, type EndedBy, type FoundUrl, hasEnded, urlsOf } from './crawl.ts';

/** The budget of a scan. */
export const BUDGET = {
  bytes: 256 * 1024 * 1024,
  timeMs: 20 * 60_000,
  /** For each page of `max_pages`: some URLs lead to what is no page. */
  requestsPerPage: 3,
  /** Discovered URLs for each page of `max_pages`, and characters of all of them together. */
  urlsPerPage: 10,
  urlCharacters: 512 * 1024,
} as const;

/** Links that are recorded of one page. Those beyond are visited as well, if they are new. */
const MAX_LINKS = 500;
const MAX_URL = 2_083;

/** The form in which URLs are compared: as `URL` writes them, without a fragment. Null for what is no http(s) URL. */
export function normalUrl(url: string, base?: string): string | null {
  const parsed = URL.parse(url, base);
  if (parsed === null) return null;
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:') return null;
  if (parsed.username !== '' || parsed.password !== '') return null;
  parsed.hash = '';
  return parsed.href.length > MAX_URL ? null : parsed.href;
}

/**
 * The site that a URL belongs to: its host without `www.`, and its port unless that is the default. http and https of
 * one host are one site; other subdomains are other sites.
 */
export function siteOf(url: string): string {
  return new URL(url).host.replace(/^www\./, '');
}

/** Reasons of pages that were not requested. */
export const NOT_REQUESTED: ReadonlySet<string | null> = new Set(['robots', 'robots_unreadable', 'known']);

export function fetchedPages({ pages }: Pick<Crawl, 'pages'>): number {
  return pages.filter(({ reason }) => !NOT_REQUESTED.has(reason)).length;
}

/** Pages that have a document: images, missing pages and copies of others do not count. */
export function readPages({ pages }: Pick<Crawl, 'pages'>): number {
  return pages.filter(({ outcome }) => outcome === 'read' || outcome === 'unchanged').length;
}

/** Pages that the scan will have read at its end, as far as it is known. */
export function plannedPages(crawl: Crawl): number {
  return Math.min(crawl.maxPages, readPages(crawl) + crawl.pending.length);
}

/** Requests that the scan may still make. */
export function requestsLeft(crawl: Crawl): number {
  const requests = crawl.maxPages * BUDGET.requestsPerPage - fetchedPages(crawl);
  return Math.max(0, Math.min(crawl.maxPages - readPages(crawl), requests));
}

export function bytesOf({ pages }: Pick<Crawl, 'pages'>): number {
  return pages.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Why the scan is over, or null while it is not. @param elapsedMs since it was requested */
export function endOf(crawl: Crawl, elapsedMs: number): EndedBy | null {
  if (hasEnded(crawl)) return crawl.endedBy;
  if (crawl.pending.length === 0) return 'all_pages';
  if (requestsLeft(crawl) === 0) return 'max_pages';
  if (bytesOf(crawl) >= BUDGET.bytes) return 'max_bytes';
  return elapsedMs >= BUDGET.timeMs ? 'max_time' : null;
}

/**
 * Collects the links of pages in the order in which the pages were discovered: the URLs that are new, and what each
 * page links to.
 */
export class Discovery {
  readonly found: FoundUrl[] = [];
  readonly #crawl: Crawl;
  readonly #site: string;
  readonly #indexes: Map<string, number>;
  #characters: number;

  /** @param site see {@link siteOf} */
  constructor(crawl: Crawl, site: string) {
    const urls = urlsOf(crawl);
    this.#crawl = crawl;
    this.#site = site;
    this.#indexes = new Map(urls.map((url, index) => [url, index]));
    this.#characters = urls.reduce((sum, { length }) => sum + length, 0);
  }

  /**
   * Takes the links of a page at `depth`: those of its site that fit into the scan.
   *
   * @returns indexes of the first ones, and whether these are all of them
   */
  add(links: readonly string[], depth: number): { readonly links: number[]; readonly isWhole: boolean } {
    if (depth >= this.#crawl.scanDepth) return { links: [], isWhole: true };
    const indexes = new Set<number>();
    let isWhole = true;
    for (const link of links) {
      const url = normalUrl(link);
      if (url === null || siteOf(url) !== this.#site) continue;
      const index = this.#indexes.get(url) ?? this.#discover(url, depth + 1);
      if (index !== null && indexes.size < MAX_LINKS) indexes.add(index);
      else isWhole = false;
    }
    return { links: [...indexes], isWhole };
  }

  #discover(url: string, depth: number): number | null {
    const isFull =
      this.#indexes.size >= this.#crawl.maxPages * BUDGET.urlsPerPage ||
      this.#characters + url.length > BUDGET.urlCharacters;
    if (isFull) return null;
    const index = this.#indexes.size;
    this.#indexes.set(url, index);
    this.#characters += url.length;
    this.found.push({ url, depth });
    return index;
  }
}

/** Recognizes later pages by earlier ones: the same page under another URL, and the same text. */
export class KnownPages {
  readonly #byUrl = new Map<string, CrawledPage>();
  readonly #byHash = new Map<string, CrawledPage>();

  constructor(pages: readonly CrawledPage[]) {
    for (const page of pages) this.add(page);
  }

  add(page: CrawledPage): void {
    if (page.documentId === null || page.outcome === 'duplicate') return;
    this.#byUrl.set(page.url, page);
    if (page.canonicalUrl !== null) this.#byUrl.set(page.canonicalUrl, page);
    if (page.hash !== null) this.#byHash.set(page.hash, page);
  }

  at(url: string): CrawledPage | undefined {
    return this.#byUrl.get(url);
  }

  withText(hash: string): CrawledPage | undefined {
    return this.#byHash.get(hash);
  }
}
