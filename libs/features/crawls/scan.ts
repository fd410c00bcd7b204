import { createHash } from 'node:crypto';

import {
  type DocumentPut,
  type Documents,
  type IngestedDocuments,
  MAX_DOCUMENT_BYTES,
} from '#libs/features/documents/index.ts';
import { derivedId, type EntityId } from '#libs/kernel/ids.ts';
import type { Process } from '#libs/platform/reactors/index.ts';

import type { Crawl, CrawledPage, CrawlEvent, CrawlState, FoundUrl, Robots, Website } from './crawl.ts';
import { DecidedPages } from './decided-pages.ts';
import { Discovery, KnownPages, normalUrl, siteOf } from './frontier.ts';
import type { HostSlots } from './host-slots.ts';
import { allows } from './robots.ts';
import { readSiteRules } from './site-rules.ts';
import {
  bytesOf,
  withoutContent,
  type PageContent,
  RedirectRefused,
  unvisitedPage,
  visit,
  type Visit,
  type VisitTools,
} from './visit.ts';

export interface ScanTools extends VisitTools {
  readonly documents: Pick<Documents, 'find' | 'remove'>;
  readonly ingestedDocuments: IngestedDocuments;
  readonly slots: HostSlots;
  /** Between the starts of two requests to a site whose robots.txt has no `crawl-delay`. */
  readonly intervalMs: number;
}

/** Pages visited at the same time. */
const AT_ONCE = 8;
/** Decoded bytes of pages after which a step visits no more: it has the time to read those under way, too. */
const MAX_STEP_BYTES = 8 * 1024 * 1024;
/** Longest header that is recorded. */
const MAX_ETAG = 256;
/** Namespace of the ids of documents. Part of the storage format: never change it. */
const DOCUMENTS = '3d0b2f4e-1c56-4d7a-9d1e-7b8f5a6c4e20';

interface PageDocument {
  readonly id: EntityId;
  readonly url: string;
  readonly name: string;
  readonly content: PageContent;
  readonly isNew: boolean;
}

/** Pages that a scan visits in one step of its process, and what comes of them. */
export class PageVisits {
  readonly pages = new DecidedPages(() => this.discovery.found);
  readonly newRobots: Robots[] = [];
  /** Sitemaps that the robots.txt files read in this step name. */
  readonly sitemaps: string[] = [];
  website: Website | null = null;
  /** Where the start page was found. */
  finalUrl: string;
  readonly #crawl: Crawl;
  readonly #process: Process<CrawlState, CrawlEvent>;
  readonly #tools: ScanTools;
  readonly #known: KnownPages;
  readonly #robots: Map<string, Promise<Robots>>;
  readonly #previous: Map<string, CrawledPage>;
  readonly #underWay = new Set<Promise<unknown>>();
  #decided: Promise<unknown> = Promise.resolve();
  /** Also of pages that wait for slower ones to be recorded. */
  #visitedBytes = 0;
  #discovery: Discovery | null = null;

  constructor(crawl: Crawl, process: Process<CrawlState, CrawlEvent>, tools: ScanTools) {
    this.#crawl = crawl;
    this.#process = process;
    this.#tools = tools;
    this.finalUrl = crawl.url;
    this.#known = new KnownPages(crawl.pages);
    this.#robots = new Map(crawl.robots.map((one) => [one.origin, Promise.resolve(one)]));
    this.#previous = new Map(crawl.previous.map((one) => [one.url, one]));
    if (crawl.site !== null) this.#discovery = new Discovery(crawl, crawl.site);
  }

  /** URLs that were discovered. */
  get discovery(): Discovery {
    this.#discovery ??= new Discovery(this.#crawl, siteOf(this.finalUrl));
    return this.#discovery;
  }

  /**
   * Starts the visit of the next page. @returns whether a request was needed, or null if the site admits it too late
   * @throws Fault; the reason of the signal
   */
  async begin(entry: FoundUrl, maxWaitMs: number): Promise<boolean | null> {
    const known = this.#known.at(entry.url);
    if (known !== undefined) {
      this.#decide(entry, Promise.resolve({ ...withoutContent('duplicate', 'known'), documentId: known.documentId }));
      return false;
    }
    const robots = await this.robotsOf(entry.url);
    if (!allows(robots, entry.url)) {
      // The robots.txt cannot be read this time: the page may be allowed the next time.
      const refused =
        robots.problem === null ? withoutContent('skipped', 'robots') : withoutContent('failed', 'robots_unreadable');
      this.#decide(entry, Promise.resolve(refused));
      return false;
    }
    while (this.#underWay.size >= AT_ONCE) await Promise.race(this.#underWay);
    const release = await this.#takeSlot(entry.url, maxWaitMs);
    if (release === null) return null;
    const visited = this.#visit(entry).finally(release);
    const ended: Promise<unknown> = visited
      .then((found) => (this.#visitedBytes += bytesOf(found)))
      .catch(() => undefined)
      .finally(() => this.#underWay.delete(ended));
    this.#underWay.add(ended);
    this.#decide(entry, visited);
    return true;
  }

  /** Whether what was visited is enough for one step. */
  get isFull(): boolean {
    return this.#visitedBytes >= MAX_STEP_BYTES;
  }

  /** Waits until all visits have ended and their documents are written. @throws the first failure */
  async end(): Promise<void> {
    await this.#decided;
    await this.pages.allWritten();
  }

  robotsOf(url: string): Promise<Robots> {
    const { origin } = new URL(url);
    const known = this.#robots.get(origin);
    if (known !== undefined) return known;
    const { fetcher } = this.#tools;
    const read = readSiteRules(fetcher, origin, this.#process.signal).then(({ robots, sitemaps }) => {
      this.newRobots.push(robots);
      this.sitemaps.push(...sitemaps);
      return robots;
    });
    this.#robots.set(origin, read);
    return read;
  }

  /** Removes documents of earlier scans. */
  async remove(ids: readonly EntityId[]): Promise<void> {
    await Promise.all(ids.map((id) => this.#tools.documents.remove(this.#process.commandContext(`remove ${id}`), id)));
  }

  async #visit(entry: FoundUrl): Promise<Visit> {
    const { signal, organizationId } = this.#process;
    const previous = this.#previous.get(entry.url);
    const documentId = previous?.documentId ?? null;
    const document = documentId === null ? null : await this.#tools.documents.find(organizationId, documentId);
    // Without its document, a page is not to be answered as unchanged.
    const hasDocument = document !== null && document.status !== 'failed';
    const validators = hasDocument ? previous : undefined;
    const documentAt = (url: string) => (this.#crawl.knowledgeGraph === null ? null : this.#documentId(url));
    const onRedirect = (to: string) => this.#checkRedirect(entry, to);
    return visit(this.#tools, entry.url, { validators, signal, organizationId, documentAt, onRedirect });
  }

  #documentId(url: string): EntityId {
    return derivedId(DOCUMENTS, `${this.#crawl.id} ${url}`);
  }

  async #takeSlot(url: string, maxWaitMs: number): Promise<(() => Promise<void>) | null> {
    const { slots, fetcher, intervalMs } = this.#tools;
    const { crawlDelayMs } = await this.robotsOf(url);
    const isAllowed = fetcher.isAllowedHost(url);
    // Hosts of the operator have no limit but their own.
    if (isAllowed && crawlDelayMs === null) return async () => undefined;
    const { signal, organizationId } = this.#process;
    return slots.take(siteOf(url), { organizationId, intervalMs: crawlDelayMs ?? intervalMs, maxWaitMs, signal });
  }

  async #checkRedirect({ depth }: FoundUrl, to: string): Promise<void> {
    const url = normalUrl(to) ?? to;
    const known = this.#known.at(url);
    if (known !== undefined) throw new RedirectRefused('duplicate', 'redirect', known.documentId);
    // The start page says where the site is.
    if (depth > 1 && siteOf(url) !== this.#crawl.site) throw new RedirectRefused('skipped', 'other_site');
    const robots = await this.robotsOf(url);
    if (robots.problem !== null) throw new RedirectRefused('failed', 'robots_unreadable');
    if (!allows(robots, url)) throw new RedirectRefused('skipped', 'robots_of_redirect');
  }

  /** Decides about pages in the order of their discovery, whenever their responses arrive. */
  #decide(entry: FoundUrl, visited: Promise<Visit>): void {
    const before = this.#decided;
    this.#decided = Promise.all([visited, before]).then(([found]) => this.#record(entry, found));
    // `end` reports it.
    this.#decided.catch(() => undefined);
  }

  #record(entry: FoundUrl, visited: Visit): void {
    const page = this.#pageOf(entry, visited);
    this.#known.add(page);
    this.pages.add(page);
  }

  #pageOf(entry: FoundUrl, visited: Visit): CrawledPage {
    const previous = this.#previous.get(entry.url);
    switch (visited.kind) {
      case 'content':
        return this.#contentPage(entry, visited);
      case 'unchanged': {
        if (previous === undefined)
          return { ...unvisitedPage(entry), outcome: 'failed', reason: 'http_304', status: 304 };
        if (entry.depth === 1) this.finalUrl = previous.canonicalUrl ?? entry.url;
        const links = this.#linksOf(previous, entry);
        return { ...previous, ...entry, outcome: 'unchanged', reason: null, status: visited.status, bytes: 0, links };
      }
      case 'nothing': {
        const { kind: _kind, ...rest } = visited;
        const page = { ...unvisitedPage(entry), ...rest };
        if (page.outcome !== 'failed' || previous === undefined) return page;
        // A page that could not be read this time may be there the next time, and so may the pages that it linked to.
        const { documentId, hash, title } = previous;
        // Without its start page, a site is not visited.
        const links = entry.depth === 1 ? [] : this.#linksOf(previous, entry);
        return { ...page, documentId, hash, title, links };
      }
    }
  }

  /** The links that a page had in the scan before, in this one. */
  #linksOf({ links }: CrawledPage, { depth }: FoundUrl): number[] {
    const { previousUrls } = this.#crawl;
    return this.discovery.add(
      links.flatMap((index) => previousUrls[index] ?? []),
      depth,
    ).links;
  }

  #contentPage(entry: FoundUrl, visited: Extract<Visit, { kind: 'content' }>): CrawledPage {
    const { response, content, bytes, isForwarded } = visited;
    const { url, status, headers } = response;
    if (entry.depth === 1) {
      this.finalUrl = url;
      this.website = content.website;
    }
    const { links, isWhole } = this.discovery.add(content.links, entry.depth);
    const hasLinks = (isWhole && content.hasAllLinks) || entry.depth >= this.#crawl.scanDepth;
    // The next scan asks the page that forwards, which may be unchanged when the page that it leads to is not.
    const mayBeUnchanged = hasLinks && !isForwarded;
    const canonical = this.#canonicalOf(url, content);
    const page: CrawledPage = {
      ...unvisitedPage(entry),
      status,
      canonicalUrl: canonical === entry.url ? null : canonical,
      title: content.title,
      bytes,
      characters: typeof content.body === 'string' ? content.body.trim().length : null,
      etag: mayBeUnchanged ? shortHeader(headers.get('etag')) : null,
      lastModified: mayBeUnchanged ? shortHeader(headers.get('last-modified')) : null,
      links,
    };
    if (!content.isIndexed) return { ...page, outcome: 'skipped', reason: 'noindex' };
    if (content.body.length === 0) return { ...page, outcome: 'skipped', reason: 'no_text' };
    const hash = createHash('sha256').update(content.body).digest('hex');
    const same = this.#known.at(canonical) ?? this.#known.withText(hash);
    if (same !== undefined) {
      const reason = same.hash === hash ? 'same_text' : 'canonical';
      return { ...page, outcome: 'duplicate', reason, documentId: same.documentId, hash };
    }
    const documentId = this.#documentId(canonical);
    const before = this.#crawl.previous.find((one) => one.documentId === documentId);
    const isNew = before === undefined;
    this.#write({ id: documentId, url: canonical, name: content.title ?? canonical, content, isNew });
    const isSame = before?.hash === hash && before.title === content.title;
    return { ...page, outcome: isSame ? 'unchanged' : 'read', documentId, hash };
  }

  /** `rel=canonical` counts within the site only. */
  #canonicalOf(url: string, { canonical }: PageContent): string {
    const stated = canonical === null ? null : normalUrl(canonical, url);
    return stated !== null && siteOf(stated) === siteOf(url) ? stated : (normalUrl(url) ?? url);
  }

  #write({ id, url, name, content, isNew }: PageDocument): void {
    const { id: crawlId, knowledgeGraph } = this.#crawl;
    const { contentType, body, structured, facts } = content;
    const common = { id, knowledgeGraph, name, contentType, structured, url, crawlId };
    const put: DocumentPut =
      typeof body === 'string' ? { ...common, text: atMost(body, MAX_DOCUMENT_BYTES) } : { ...common, bytes: body };
    const isWhole = 'text' in put && put.text === body;
    const options = { signal: this.#process.signal, isNew, facts: isWhole ? facts : null };
    const context = this.#process.commandContext(`put ${id}`);
    this.pages.addWrite(this.#tools.ingestedDocuments.put(context, put, options));
  }
}

function shortHeader(value: string | undefined): string | null {
  return value !== undefined && value.length <= MAX_ETAG ? value : null;
}

/** Cuts a text between two characters. */
function atMost(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  const bytes = Buffer.from(text);
  return bytes.length <= maxBytes ? text : new TextDecoder().decode(bytes.subarray(0, maxBytes), { stream: true });
}
