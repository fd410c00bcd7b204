import type { CrawledPage, CrawledPages, FoundUrl } from './crawl.ts';

/** Pages after which they are recorded while the step continues. */
const PART_PAGES = 50;
/** The limit of their JSON: an append may have 1 MiB, with the pages under way and the URLs that they add. */
const MAX_PART_JSON = 256 * 1024;

/** The pages of a step that are recorded at a time. */
export type StepPart = Pick<CrawledPages, 'pages' | 'found'>;

/**
 * Pages of a step in the order of their discovery, from the decision about each until it is taken to be recorded.
 *
 * Guarantees: a page is taken after its document was written, and with it or before it the URLs that were discovered in
 * it: its `links` refer to them.
 */
export class DecidedPages {
  /** Pages that are not taken. */
  readonly waiting: CrawledPage[] = [];
  /** All of them. */
  count = 0;
  readonly #found: () => FoundUrl[];
  /** Settles when the documents of all pages are written. */
  #written: Promise<unknown> = Promise.resolve();
  /** The first of `waiting`, whose documents are written. */
  #writtenPages = 0;
  #jsonLength = 0;
  #measuredUrls = 0;

  /** @param found the discovered URLs that are not recorded; they are taken out of it */
  constructor(found: () => FoundUrl[]) {
    this.#found = found;
  }

  /** @param write of the document of the page that is added next */
  addWrite(write: Promise<unknown>): void {
    this.#after(Promise.all([this.#written, write]));
  }

  add(page: CrawledPage): void {
    this.waiting.push(page);
    this.count += 1;
    this.#after(this.#written.then(() => (this.#writtenPages += 1)));
    const found = this.#found();
    this.#jsonLength += JSON.stringify([page, found.slice(this.#measuredUrls)]).length;
    this.#measuredUrls = found.length;
  }

  /** @throws the first failure */
  async allWritten(): Promise<void> {
    await this.#written;
  }

  /**
   * The pages that are to be recorded before the next visit begins; null while they are few. @throws the first
   * failure
   */
  async takePart(): Promise<StepPart | null> {
    if (this.#jsonLength >= MAX_PART_JSON) await this.#written;
    else if (this.#writtenPages < PART_PAGES) return null;
    return this.take();
  }

  take(): StepPart {
    const pages = this.waiting.splice(0, this.#writtenPages);
    const found = this.#found().splice(0);
    this.#writtenPages = 0;
    this.#measuredUrls = 0;
    this.#jsonLength = JSON.stringify(this.waiting).length;
    return { pages, found };
  }

  #after(written: Promise<unknown>): void {
    this.#written = written;
    // `allWritten` and `takePart` report it.
    written.catch(() => undefined);
  }
}
