import { ASIDE_REGION, type Region } from './blocks.ts';
import type { Link } from './extraction.ts';
import { BLOCK } from './html-elements.ts';
import type { Attributes, HtmlNode } from './html-node.ts';
import { MarkdownWriter } from './markdown-writer.ts';
import { PageForward } from './page-forward.ts';
import { PageHead } from './page-head.ts';
import { PageLinks } from './page-links.ts';
import { raised } from './plain-text.ts';
import type { PageRegions } from './page-regions.ts';
import { JsonLdScripts, Microdata } from './structured-data.ts';

const MAX_TEXT_LINKS = 2_000;

/** Reads a page: what happens at the start and end of each of its elements. */
export class PageReader {
  readonly links: PageLinks;
  readonly head: PageHead;
  readonly forward: PageForward;
  readonly writer = new MarkdownWriter();
  readonly jsonLd = new JsonLdScripts();
  readonly microdata: Microdata;
  /** Links with their text as the writer has it, of all regions. */
  readonly textLinks: (Link & { readonly region: Region })[] = [];
  readonly #regions: PageRegions;
  /** Open elements whose text is not read. */
  #hidden = 0;
  #foreign = 0;
  /** Open `noscript` elements: what they say is not for browsers. */
  #noscript = 0;
  /** Open superscripts. */
  #raised = 0;
  /** Text of `<title>`, or of the first `<h1>`. */
  #caption: string | null = null;
  #isPre = false;
  readonly #numbers: number[] = [];

  constructor(url: string, regions: PageRegions) {
    this.#regions = regions;
    this.links = new PageLinks(url);
    this.head = new PageHead(this.links);
    this.forward = new PageForward(this.links);
    this.microdata = new Microdata((href) => this.links.resolve(href));
  }

  /** Reads an element and all that it holds. */
  read(node: HtmlNode): void {
    if (node.isText) return this.#text(node.text);
    if (node.name === 'math') return this.#text(formulaOf(node));
    const leave = this.#enter(node);
    for (let child = node.first; child !== null; child = child.next) this.read(child);
    leave?.();
  }

  #text(text: string): void {
    this.jsonLd.text(text);
    if (this.#caption !== null && this.#caption.length < 1_000) this.#caption += text;
    if (this.#hidden > 0) return;
    this.writer.text(this.#raised > 0 ? raised(text, this.writer.last) : text);
    if (this.microdata.isReading) this.microdata.text(text);
  }

  /** @returns what to do at the element's end */
  #enter(node: HtmlNode): (() => void) | null {
    const { name, flags } = node;
    const hasItem = node.attribute('itemprop') !== undefined || node.attribute('itemscope') !== undefined;
    const leaveItem = hasItem ? this.microdata.enter(name, node.attributes()) : null;
    const leaveRegion = this.#hidden > 0 ? null : this.#enterRegion(node, flags);
    const leaveElement = this.#enterElement(node);
    return both(leaveElement, both(leaveRegion, leaveItem));
  }

  #enterRegion(node: HtmlNode, flags: number): (() => void) | null {
    const isBlock = (flags & BLOCK) !== 0;
    const before = this.writer.region;
    const region = this.#regions.of(node, before);
    if (this.#regions.isHidden(node) || (region === ASIDE_REGION && before !== ASIDE_REGION && !isBlock)) {
      if (isBlock) this.writer.endBlock();
      this.#hidden += 1;
      return () => void (this.#hidden -= 1);
    }
    if (region === before) return null;
    this.writer.endBlock();
    this.writer.region = region;
    return () => {
      this.writer.endBlock();
      this.writer.region = before;
    };
  }

  // Each kind of element has one line.
  // oxlint-disable-next-line max-lines-per-function
  #enterElement(node: HtmlNode): (() => void) | null {
    const { writer, head } = this;
    const { name, flags } = node;
    switch (name) {
      case 'html':
        return (void head.setLanguage(node.attribute('lang')), null);
      case 'title':
        return this.#foreign > 0 ? null : this.#readCaption((text) => head.setTitle(text));
      case 'meta':
        return (void this.#meta(node.attributes()), null);
      case 'link':
        return (void head.link(node.attributes()), null);
      case 'base':
        return (void this.links.setBase(node.attribute('href') ?? ''), null);
      case 'sup':
        this.#raised += 1;
        return () => void (this.#raised -= 1);
      case 'script':
        return this.#enterScript(node.attribute('type'));
      case 'svg':
        this.#foreign += 1;
        return () => void (this.#foreign -= 1);
      case 'a':
      case 'area':
        return this.#enterLink(node);
      case 'frame':
      case 'iframe':
        if (this.#noscript === 0) this.forward.frame(name, node.attributes());
        return null;
      case 'noscript':
        this.#noscript += 1;
        return both(() => void (this.#noscript -= 1), (flags & BLOCK) === 0 ? null : this.#enterBlock());
      case 'br':
        return (void writer.lineBreak(), null);
      case 'h1':
      case 'h2':
      case 'h3':
      case 'h4':
      case 'h5':
      case 'h6':
        return this.#enterHeading(Number(name.slice(1)));
      case 'pre':
        return this.#enterPre();
      case 'blockquote':
        return writer.quote();
      case 'ul':
      case 'ol':
      case 'menu':
        return this.#enterList(name === 'ol');
      case 'li':
        return writer.item(this.#marker());
      case 'dl':
        return writer.definitions();
      case 'dt':
        return writer.term(node.attribute('id') !== undefined);
      case 'dd':
        return writer.definition();
      case 'table':
        return writer.table(/^(?:presentation|none)$/.test(node.attribute('role') ?? ''));
      case 'tr':
        return (void writer.row(), null);
      case 'td':
      case 'th':
        return writer.cell(name === 'th', node.attribute('colspan'), node.attribute('rowspan'));
      default:
        return (flags & BLOCK) === 0 ? null : this.#enterBlock();
    }
  }

  #meta(attributes: Attributes): void {
    if (this.#noscript === 0) this.forward.meta(attributes);
    this.head.meta(attributes);
  }

  /** MathJax 2 writes formulas as scripts. */
  #enterScript(type: string | undefined): (() => void) | null {
    if (!type?.toLowerCase().startsWith('math/tex')) return this.jsonLd.enter(type);
    const hidden = this.#hidden;
    this.#hidden = 0;
    return () => void (this.#hidden = hidden);
  }

  #enterBlock(): () => void {
    this.writer.endBlock();
    return () => this.writer.endBlock();
  }

  #enterHeading(level: number): () => void {
    const end = this.writer.heading(level);
    if (level > 1 || this.writer.region === ASIDE_REGION) return end;
    const read = this.#readCaption((text) => this.head.setHeading(text));
    return () => {
      read();
      end();
    };
  }

  #readCaption(use: (text: string) => void): () => void {
    this.#caption = '';
    return () => {
      if (this.#caption !== null) use(this.#caption);
      this.#caption = null;
    };
  }

  #enterPre(): (() => void) | null {
    if (this.#isPre) return null;
    this.#isPre = true;
    const end = this.writer.preformatted();
    return () => {
      this.#isPre = false;
      end();
    };
  }

  #enterList(isOrdered: boolean): () => void {
    this.writer.endBlock();
    this.#numbers.push(isOrdered ? 1 : 0);
    return () => {
      this.writer.endBlock();
      this.#numbers.pop();
    };
  }

  #marker(): string {
    const number = this.#numbers.at(-1) ?? 0;
    if (number === 0) return '- ';
    this.#numbers[this.#numbers.length - 1] = number + 1;
    return `${number}. `;
  }

  #enterLink(node: HtmlNode): (() => void) | null {
    const [href, rel] = [node.attribute('href'), node.attribute('rel')];
    if (href === undefined) return null;
    const isNofollow = rel !== undefined && /(?:^|\s)nofollow(?:\s|$)/i.test(rel);
    const url = this.links.add(href, isNofollow);
    const [start, region] = [this.writer.length, this.writer.region];
    return () => {
      if (this.#hidden > 0 || this.writer.length <= start) return;
      this.writer.markLinked(this.writer.length - start);
      if (url === null || this.textLinks.length >= MAX_TEXT_LINKS) return;
      const text = this.writer.since(start);
      if (text.trim() !== '') this.textLinks.push({ url, text, region });
    };
  }
}

type Leave = (() => void) | null;

function both(first: Leave, second: Leave): Leave {
  if (first === null || second === null) return first ?? second;
  return () => {
    first();
    second();
  };
}

/** A formula in MathML: its TeX, where the page has it, else its signs in one line. */
function formulaOf(math: HtmlNode): string {
  const tex = math.find(
    ({ name, list }) => name === 'annotation' && list.some(({ value }) => /x-tex|latex/i.test(value)),
  );
  return ` ${tex === null ? inLine(math) : tex.content().trim()} `;
}

const BETWEEN = new Map([
  ['msup', '^'],
  ['msub', '_'],
  ['mover', '^'],
  ['munder', '_'],
  ['mfrac', '/'],
]);

function inLine(node: HtmlNode): string {
  if (node.isText) return node.text.replace(/\s+/g, ' ');
  if (node.name.startsWith('annotation')) return '';
  const parts: string[] = [];
  for (let child = node.first; child !== null; child = child.next) {
    const text = inLine(child);
    if (text.trim() !== '') parts.push(text);
  }
  const between = BETWEEN.get(node.name);
  if (node.name === 'msqrt') return `√(${parts.join('')})`;
  return between === undefined ? parts.join('') : parts.map(grouped).join(between);
}

function grouped(text: string): string {
  return [...text.trim()].length > 1 ? `(${text.trim()})` : text.trim();
}
