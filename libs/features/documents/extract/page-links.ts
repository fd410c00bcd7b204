/** Distinct links that are listed. */
export const MAX_LINKS = 2_000;
/** Distinct values of `href` that are looked at. */
const MAX_SEEN = 20_000;
const MAX_URL = 4_096;

/** Collects the links of a page, each once. */
export class PageLinks {
  #base: URL | null;
  #hasBase = false;
  /** URL by `href` without fragment. */
  readonly #resolved = new Map<string, string | null>();
  /** Whether each link is given only with `rel="nofollow"`. */
  readonly #links = new Map<string, boolean>();
  isTruncated = false;

  constructor(url: string) {
    this.#base = URL.canParse(url) ? new URL(url) : null;
  }

  /** `<base href>`: the first of a page counts. */
  setBase(href: string): void {
    const base = this.#hasBase ? null : parseUrl(href, this.#base);
    if (base === null) return;
    this.#hasBase = true;
    this.#base = base;
    this.#resolved.clear();
  }

  /** @returns absolute http or https URL without fragment; null for other links, and those within the page */
  add(href: string, isNofollow: boolean): string | null {
    const url = this.resolve(href);
    if (url === null) return null;
    const known = this.#links.get(url);
    if (known === undefined && this.#links.size >= MAX_LINKS) this.isTruncated = true;
    else this.#links.set(url, isNofollow && known !== false);
    return url;
  }

  resolve(href: string): string | null {
    const hash = href.indexOf('#');
    const target = hash === -1 ? href : href.slice(0, hash);
    if (target === '' || target.length > MAX_URL) return null;
    const known = this.#resolved.get(target);
    if (known !== undefined) return known;
    if (this.#resolved.size >= MAX_SEEN) {
      this.isTruncated = true;
      return null;
    }
    const url = parseUrl(target, this.#base)?.href ?? null;
    this.#resolved.set(target, url);
    return url;
  }

  list(isNofollow: boolean): string[] {
    return [...this.#links].filter(([, nofollow]) => nofollow === isNofollow).map(([url]) => url);
  }
}

function parseUrl(href: string, base: URL | null): URL | null {
  const url = URL.parse(href.trim(), base?.href);
  return url !== null && /^https?:$/.test(url.protocol) ? url : null;
}
