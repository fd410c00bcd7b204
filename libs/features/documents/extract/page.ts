import {
  ARTICLE_REGION,
  ASIDE_REGION,
  type Block,
  BODY_REGION,
  joinBlocks,
  MAIN_REGION,
  type Region,
} from './blocks.ts';
import { decodeText } from './charset.ts';
import type { JsonObject, Link, Page, PageSource, StructuredData } from './extraction.ts';
import { PageReader } from './page-reader.ts';

/** Characters that a part of a page must have to be its content. */
const MIN_CONTENT = 140;
const MAX_CONTENT_LINKS = 100;
/** Characters of structured data as JSON. */
const MAX_STRUCTURED = 128 * 1024;

/**
 * Reads a page of a website in one pass. Any bytes are a page: what is broken is read as browsers would, roughly, and
 * without limits of depth or size, in linear time.
 */
export function readPage(bytes: Uint8Array, source: PageSource): Page {
  const { text: html, charset } = decodeText(bytes, source.contentType);
  const isXml = source.contentType?.includes('xhtml') ?? false;
  const reader = new PageReader(source.url, isXml);
  reader.read(html);
  const { head, links } = reader;
  const content = contentOf(reader.writer.blocks());
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
    text: joinBlocks(content.blocks),
    structured: structuredOf(reader, content.region, source.url),
  };
}

/** The main content if it is marked, else articles, else all but navigation, else everything. */
function contentOf(blocks: readonly Block[]): { readonly blocks: readonly Block[]; readonly region: Region } {
  const reading = (region: Region) => ({ blocks: blocks.filter((block) => block.region >= region), region });
  for (const region of [MAIN_REGION, ARTICLE_REGION] as const) {
    const content = reading(region);
    if (sizeOf(content.blocks) >= MIN_CONTENT) return content;
  }
  const body = reading(BODY_REGION);
  if (body.blocks.length === 0) return reading(ASIDE_REGION);
  const text = body.blocks.filter((block) => block.kind === 'heading' || block.linked * 4 < block.plain.length * 3);
  return sizeOf(text) >= MIN_CONTENT ? { blocks: text, region: BODY_REGION } : body;
}

function sizeOf(blocks: readonly Block[]): number {
  return blocks.reduce((sum, { kind, plain }) => sum + (kind === 'heading' ? 0 : plain.length), 0);
}

function structuredOf(reader: PageReader, region: Region, ownUrl: string): StructuredData {
  const own = ownUrl.split('#')[0];
  const links: Link[] = [];
  const seen = new Set<string>();
  for (const link of reader.textLinks) {
    if (links.length >= MAX_CONTENT_LINKS) break;
    if (link.region < region || link.url === own || seen.has(link.url)) continue;
    seen.add(link.url);
    links.push({ url: link.url, text: link.text });
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
