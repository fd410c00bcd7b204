import { parsedJson } from '#libs/kernel/json.ts';
import { admitText } from '#libs/kernel/text.ts';
import { type Block, BODY_REGION, joinBlocks, type Region } from './blocks.ts';
import { decodeText } from './charset.ts';
import type { JsonObject, Link, Page, PageSource, StructuredData } from './extraction.ts';
import type { HtmlNode } from './html-node.ts';
import { parseHtml } from './html-tree.ts';
import { inLine } from './markdown-writer.ts';
import { contentOf, MIN_CONTENT, sizeOf } from './page-blocks.ts';
import { PageRegions } from './page-regions.ts';
import { PageReader } from './page-reader.ts';

const MAX_CONTENT_LINKS = 100;
const MAX_LINK_TEXT = 200;
/** Characters of structured data as JSON. */
const MAX_STRUCTURED = 128 * 1024;

/**
 * Reads a page of a website in one pass. Any bytes are a page: what is broken is read as browsers would, roughly, and
 * without limits of depth or size, in linear time.
 */
export function readPage(bytes: Uint8Array, source: PageSource): Page {
  const { text: html, charset } = decodeText(bytes, source.contentType);
  const document = parseHtml(html);
  const reader = new PageReader(source.url, new PageRegions(document));
  reader.read(document);
  const { head, links } = reader;
  const content = contentOf(reader.writer.blocks());
  const blocks = sizeOf(content.blocks) < MIN_CONTENT ? withEmbedded(content.blocks, document) : content.blocks;
  return {
    charset,
    title: head.title,
    description: head.description,
    language: head.language,
    icon: head.icon,
    canonical: head.canonical,
    robots: head.robots,
    links: links.list(false),
    nofollowLinks: links.list(true),
    linksTruncated: links.isTruncated,
    forward: reader.forward.target(blocks.length > 0),
    text: joinBlocks(blocks),
    structured: structuredOf(reader, content.region, source.url),
  };
}

/** Text that a page shows by scripts, after what it holds itself. */
function withEmbedded(blocks: readonly Block[], document: HtmlNode): Block[] {
  const known = blocks.map(({ plain }) => plain).join('\n');
  const texts = embeddedTexts(document).filter((text) => !known.includes(text));
  return [
    ...blocks,
    ...texts.map((text): Block => ({ kind: 'paragraph', level: 0, text, plain: text, linked: 0, region: BODY_REGION })),
  ];
}

function structuredOf(reader: PageReader, region: Region, ownUrl: string): StructuredData {
  const own = ownUrl.split('#')[0];
  const links: Link[] = [];
  const seen = new Set<string>();
  for (const link of reader.textLinks) {
    if (links.length >= MAX_CONTENT_LINKS) break;
    if (link.region < region || link.url === own || seen.has(link.url)) continue;
    const text = admitText(inLine(link.text), MAX_LINK_TEXT);
    if (text === '') continue;
    seen.add(link.url);
    links.push({ url: link.url, text });
  }
  let left = MAX_STRUCTURED - JSON.stringify(reader.head.properties).length - JSON.stringify(links).length;
  const within = (objects: readonly JsonObject[]): JsonObject[] =>
    objects.filter((object) => {
      const size = JSON.stringify(object).length;
      if (size > left) return false;
      left -= size;
      return true;
    });
  return {
    jsonLd: within(reader.jsonLd.objects),
    microdata: within(reader.microdata.objects),
    openGraph: reader.head.properties,
    links,
  };
}

/** Characters of a script that is parsed, of all scripts of a page, and of the texts that are taken. */
const MAX_SCRIPT = 2 * 1024 * 1024;
const MAX_SCRIPTS_LENGTH = 4 * 1024 * 1024;
const MAX_TEXT = 64 * 1024;
const MAX_DEPTH = 64;
/** A sentence, and not a label, an address or code. */
const MIN_PROSE = 60;
const MIN_WORDS = 8;
const CODE = /[{};]\s*(?:$|[}.#@a-z-])|^[\w+/=-]{60,}$|function\s*\(|=>|https?:\/\/\S+$/;
/**
 * Sentences in the data that the scripts of a page show it from, such as `__NEXT_DATA__`, in their order: for a page that
 * holds no other text.
 */
function embeddedTexts(document: HtmlNode): string[] {
  const texts = new Texts();
  let left = MAX_SCRIPTS_LENGTH;
  const visit = (node: HtmlNode): void => {
    const script = node.name === 'script' ? (node.first?.text ?? '') : '';
    if (script.length > MIN_PROSE && script.length <= Math.min(MAX_SCRIPT, left)) {
      left -= script.length;
      const data = dataOf(script);
      if (data !== undefined) collect(data, texts, 0);
    }
    for (let child = node.first; child !== null; child = child.next) visit(child);
  };
  visit(document);
  return texts.list;
}

/** JSON, alone or assigned to a variable. */
function dataOf(script: string): unknown {
  const start = script.search(/[[{]/);
  const isData =
    start !== -1 && /^\s*(?:(?:window|self|var|let|const)[\w\s.[\]"']{0,100}=\s*)?$/.test(script.slice(0, start));
  if (!isData) return undefined;
  const end = Math.max(script.lastIndexOf('}'), script.lastIndexOf(']'));
  return parsedJson(script.slice(start, end + 1));
}

function collect(value: unknown, texts: Texts, depth: number): void {
  if (typeof value === 'string') return texts.add(value);
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return;
  for (const member of Object.values(value)) collect(member, texts, depth + 1);
}

class Texts {
  readonly list: string[] = [];
  readonly #seen = new Set<string>();
  #left = MAX_TEXT;

  /** Adds a text that is prose, once. */
  add(value: string): void {
    if (value.length < MIN_PROSE || value.length > this.#left) return;
    const text = value
      .replace(/<[^<>]{0,2000}>/g, ' ')
      .replace(/\s+/g, ' ')
      .trim();
    if (text.length < MIN_PROSE || text.split(' ').length < MIN_WORDS || CODE.test(text) || this.#seen.has(text))
      return;
    this.#seen.add(text);
    this.#left -= text.length;
    this.list.push(text);
  }
}
