import type { Attributes } from './html-node.ts';
import type { PageLinks } from './page-links.ts';

/** Pages that say more than a few seconds show their own text, and go on when it is read. */
const MAX_DELAY_S = 10;
const MAIN_FRAME = /^(?:main|content|body|inhalt|haupt)/i;

/** `0; url=next.html`, as browsers read it (HTML standard, "shared declarative refresh steps"). */
const REFRESH = /^\s*(?=[\d.])(\d*)[\d.]*(?:\s*[;,]|\s)\s*(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|(.*))/is;

/** Where the header `Refresh` or its `<meta>` leads to soon; null if it does not, or to the same page. */
export function refreshTarget(value: string): string | null {
  const [, seconds = '', ...urls] = REFRESH.exec(value) ?? [];
  const url = urls.find((one) => one !== undefined)?.trim() ?? '';
  return url === '' || Number(seconds) > MAX_DELAY_S ? null : url;
}

/** Where a page leads its readers, instead of being read itself. */
export class PageForward {
  readonly #links: PageLinks;
  #refresh: string | null = null;
  #frame: string | null = null;
  #hasMainFrame = false;
  #inline: string | null = null;

  constructor(links: PageLinks) {
    this.#links = links;
  }

  meta({ 'http-equiv': header, content }: Attributes): void {
    if (header?.trim().toLowerCase() !== 'refresh') return;
    const target = refreshTarget(content ?? '');
    if (target !== null) this.#refresh ??= this.#links.resolve(target);
  }

  /** Frames are links as well: a scan of several pages reads them all. */
  frame(element: 'frame' | 'iframe', { src, name = '', width, height, style = '', hidden }: Attributes): void {
    if (src === undefined) return;
    if (element === 'iframe') {
      const isHidden = /^[01](?:px)?$/.test(width ?? '') || /^[01](?:px)?$/.test(height ?? '') || hidden !== undefined;
      if (!isHidden && !/display\s*:\s*none|visibility\s*:\s*hidden/i.test(style))
        this.#inline ??= this.#links.resolve(src);
      return;
    }
    const url = this.#links.add(src, false);
    // The first frames of old pages are menus and banners.
    if (url === null || this.#hasMainFrame) return;
    this.#hasMainFrame = MAIN_FRAME.test(name);
    this.#frame = url;
  }

  /** @param hasText whether the page has a text of its own: then its frames only add to it */
  target(hasText: boolean): string | null {
    return this.#refresh ?? (hasText ? null : (this.#frame ?? this.#inline));
  }
}
