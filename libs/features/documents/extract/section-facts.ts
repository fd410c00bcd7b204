import { admitText } from '#libs/kernel/text.ts';

import type { Content } from './extraction.ts';
import { cut, type FactCollector } from './fact-collector.ts';
import { comparable, isGeneric } from './generic-headings.ts';
import { type MarkdownBlock, plainText, withoutHeadings } from './markdown.ts';
import { splitText, type Range } from './split-text.ts';

/** A part of a document under one heading, or before the first. */
export interface Section {
  /** Key of its node; null: there are too many. */
  readonly key: string | null;
  readonly name: string;
  readonly blocks: readonly MarkdownBlock[];
}

interface Part {
  readonly title: string;
  /** Titles of the headings above it, outermost first. */
  readonly above: readonly string[];
  readonly start: number;
  readonly blocks: MarkdownBlock[];
}

const MAX_EXCERPT = 300;
const MAX_TITLES = 20;
/** Later headings are text of the section before. */
const MAX_SECTIONS = 2_000;
/** Characters before a heading that is the title of the document. */
const MAX_BEFORE_TITLE = 500;

/** A page is the same node in all documents that are read from it. */
export function documentKey({ documentId, url }: Pick<Content, 'documentId' | 'url'>): string {
  return url === null ? `document:${documentId}` : `url:${url.split('#')[0]}`;
}

/** A node for the document, and one for each of its sections. @returns the sections, in the order of the text */
export function addSections(facts: FactCollector, content: Content, blocks: readonly MarkdownBlock[]): Section[] {
  const { text, documentId } = content;
  const parts = partsOf(content.name, blocks);
  const ranges = parts.map(({ start }, index) => splitText(text, start, parts[index + 1]?.start ?? text.length));
  const passages = ranges.map((pieces) => pieces.map((piece) => facts.addPassage(text, piece)));
  const isPlain = content.contentType === 'text/plain';
  const excerpts = ranges.map((pieces, index) =>
    pieces.map((piece) => excerptOf(text.slice(piece.start, piece.end), isPlain) ?? titlesBelow(parts, index)),
  );
  const document = addDocument(facts, content, ranges[0]?.[0], excerpts[0]?.[0] ?? titlesBelow(parts, 0));
  const names = namesOf(content.name, parts);
  const keys = new Map<string, number>();
  return parts.map((part, index): Section => {
    const name = names[index]!;
    const path = [...part.above, part.title].join(' › ');
    const occurrence = keys.get(path) ?? 0;
    keys.set(path, occurrence + 1);
    let key = index === 0 ? document : null;
    for (const [piece, range] of ranges[index]!.entries()) {
      if (index === 0 && piece === 0) continue;
      const summary = excerpts[index]![piece]!;
      const added = facts.addNode({
        key: `section:${documentId}:${path}:${occurrence}:${piece}`,
        name: piece === 0 ? name : `${name} (${piece + 1})`,
        summary,
        labels: ['Section'],
        offset: range.start,
        passage: passages[index]![piece]!,
      });
      const fact = summary === null ? name : `${name}: ${summary}`;
      facts.addEdge({ name: 'has section', fact, source: document, target: added, offset: range.start });
      key ??= added;
    }
    return { key, name, blocks: part.blocks };
  });
}

/** The subject of a part without text: the headings below it. */
function titlesBelow(parts: readonly Part[], index: number): string | null {
  const depth = parts[index]!.above.length;
  const titles: string[] = [];
  for (const { title, above } of parts.slice(index + 1, index + 1 + MAX_TITLES)) {
    if (index > 0 && above.length <= depth) break;
    titles.push(title);
  }
  return cut(titles.join(', '), MAX_EXCERPT) || null;
}

function addDocument(
  facts: FactCollector,
  content: Content,
  range: Range | undefined,
  lead: string | null,
): string | null {
  const { name, url, structured } = content;
  const described = structured?.openGraph['description'] ?? structured?.openGraph['og:description'];
  return facts.addNode({
    key: documentKey(content),
    name: name.trim() || url || content.documentId,
    summary: described ?? lead,
    labels: ['Document'],
    offset: range?.start ?? null,
  });
}

/** The first part belongs to the document: the text before the first heading, or under a heading that is its title. */
function partsOf(name: string, blocks: readonly MarkdownBlock[]): Part[] {
  const parts: Part[] = [{ title: name, above: [], start: 0, blocks: [] }];
  const open: { readonly level: number; readonly title: string }[] = [];
  const title = comparable(name);
  for (const block of blocks) {
    if (block.kind !== 'heading') {
      parts.at(-1)!.blocks.push(block);
      continue;
    }
    if (parts.length > MAX_SECTIONS) continue;
    while ((open.at(-1)?.level ?? 0) >= block.level) open.pop();
    const isFirst = parts.length === 1 && open.length === 0 && block.start < MAX_BEFORE_TITLE;
    const isTitle = isFirst && title.includes(comparable(block.title));
    if (!isTitle)
      parts.push({ title: block.title, above: open.map((above) => above.title), start: block.start, blocks: [] });
    open.push(block);
  }
  return parts;
}

/** Headings, with the one above where the heading alone is generic, or not the only one of its name. */
function namesOf(document: string, parts: readonly Part[]): string[] {
  const counts = new Map<string, number>();
  for (const { title } of parts) counts.set(comparable(title), (counts.get(comparable(title)) ?? 0) + 1);
  const isVague = (title: string): boolean => counts.get(comparable(title))! > 1 || isGeneric(comparable(title));
  return parts.map(({ title, above }, index) => {
    if (index === 0 || !isVague(title)) return title;
    const context = above.findLast((heading) => !isGeneric(comparable(heading))) ?? document;
    return context === '' ? title : `${cut(context, 120)} › ${title}`;
  });
}

/** The beginning of a passage, without its heading. */
function excerptOf(passage: string, isPlain: boolean): string | null {
  const text = admitText(passage, 3 * MAX_EXCERPT);
  return cut(isPlain ? text : plainText(withoutHeadings(text)), MAX_EXCERPT) || null;
}
