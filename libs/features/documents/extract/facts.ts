import { admitText } from '#libs/kernel/text.ts';
import type { Content, Extraction, PageSource, PageWithFacts, Link } from './extraction.ts';
import { FactCollector, cut, addValue, keyOf } from './fact-collector.ts';
import { addJson } from './json-facts.ts';
import { markdownBlocks, type MarkdownBlock, type TableRow, plainText, type Line, MARKDOWN_LINK } from './markdown.ts';
import { readPage } from './page.ts';
import { addSections, documentKey, type Section } from './section-facts.ts';
import { addStructuredData } from './structured-facts.ts';
import { isGeneric, isRemark, comparable } from './generic-headings.ts';

/**
 * The facts that a document states in its form: sections, tables, lists, links and structured data. The same content
 * gives the same facts with the same keys.
 */
export function extractFacts(content: Content): Extraction {
  const facts = new FactCollector(content.documentId);
  const isJson = content.contentType === 'application/json' && addJson(facts, content);
  const blocks = isJson ? [] : markdownBlocks(content.text, content.contentType !== 'text/markdown');
  const sections = isJson ? [] : addSections(facts, content, blocks);
  if (content.structured) addStructuredData(facts, content.structured, documentKey(content));
  for (const section of sections) {
    addTables(facts, section);
    addLists(facts, section);
  }
  addLinks(facts, content);
  return { ...facts.extraction(), characters: content.text.trim().length };
}

/** Reads a page, and extracts the facts of the document that it gives: with the title as its name. */
export function readPageWithFacts(bytes: Uint8Array, source: PageSource, documentId: string): PageWithFacts {
  const page = readPage(bytes, source);
  const { title, text, structured } = page;
  const { url } = source;
  const document = { documentId, name: title ?? url, url };
  const extraction = extractFacts({ ...document, contentType: 'text/markdown', text, structured });
  return { page, facts: { ...document, extraction } };
}

const MAX_COLUMNS = 50;
const NUMBERING = /^(?:#|№|no\.?|nr\.?|id|n°)?$/i;

type Table = Extract<MarkdownBlock, { kind: 'table' }>;

/** Rows of tables with a header row: a node for each, named by its first column, and its other columns as facts. */
function addTables(facts: FactCollector, section: Section): void {
  let number = 0;
  for (const block of section.blocks) {
    if (block.kind !== 'table' || section.key === null) continue;
    number += 1;
    addTable(facts, section, block, `${section.key}:table:${number}`);
  }
}

function addTable(facts: FactCollector, section: Section, { header, rows }: Table, key: string): void {
  if (header.filter((name) => name !== '').length < 2) return;
  const naming = namingColumn(header, rows);
  const occurrences = new Map<string, number>();
  for (const { cells, line, offset } of rows) {
    const name = cells[naming] ?? '';
    if (name === '' || name.length > 200) continue;
    const occurrence = occurrences.get(keyOf(name)) ?? 0;
    occurrences.set(keyOf(name), occurrence + 1);
    const columns = header
      .slice(0, MAX_COLUMNS)
      .map((column, index) => ({ column, value: cells[index] ?? '' }))
      .filter(({ column, value }, index) => index > naming && column !== '' && value !== '');
    const passage = facts.addLine(line);
    const row = facts.addNode({
      key: `${key}:${keyOf(name)}:${occurrence}`,
      name,
      summary: [...columns.map(({ column, value }) => `${column}: ${value}`), section.name].join('; '),
      labels: [labelOf(header[naming] ?? '')],
      offset,
      passage,
    });
    for (const { column, value } of columns) {
      addValue(facts, { source: row, subject: `${name} (${section.name})`, name: column }, value, { offset, passage });
    }
  }
}

/** The first column, unless that only numbers the rows. */
function namingColumn(header: readonly string[], rows: readonly TableRow[]): number {
  const isNumbered = NUMBERING.test(header[0] ?? '') && rows.every(({ cells }) => /^\d*\.?$/.test(cells[0] ?? ''));
  return isNumbered ? 1 : 0;
}

function labelOf(column: string): string {
  return column.length > 40 || isGeneric(column.toLowerCase()) ? 'Row' : column;
}

const PAIR = /^(?!\w+:\/\/)([^:：\n]{1,80})[:：](?:\s+|(?<=：))(\S.*)$/u;
const MAX_WORDS = 8;
/** Longer texts define a term; shorter ones are the value of a property. */
const MIN_DEFINITION = 60;
/**
 * Lists of `key: value`, which state properties of their section, and lists of `term: definition`, which define terms.
 * Text counts as such a list only if each of its lines has this form; of a list, most of its items have to.
 */
function addLists(facts: FactCollector, section: Section): void {
  if (section.key === null) return;
  for (const block of section.blocks) {
    const lines = linesOf(block);
    const pairs = lines.flatMap((line) => pairOf(line) ?? []);
    const needed = block.kind === 'list' ? Math.max(1, lines.length * 0.6) : Math.max(2, lines.length);
    if (pairs.length < needed) continue;
    for (const pair of pairs) addPair(facts, section, pair);
  }
}

function linesOf(block: MarkdownBlock): readonly Line[] {
  if (block.kind === 'list') return block.items;
  return block.kind === 'paragraph' ? block.lines : [];
}

interface Pair {
  readonly name: string;
  readonly value: string;
  readonly line: string;
  readonly offset: number;
}

function pairOf({ text, offset }: Line): Pair | null {
  if (!/[:：]/.test(text)) return null;
  const [, name = '', value = ''] = PAIR.exec(plainText(admitText(text, 3_000))) ?? [];
  const key = name.trim();
  if (!/^[\p{L}\p{N}_$.@<(*-]/u.test(key) || isRemark(key) || /[.!?。]\s/.test(key)) return null;
  return key.split(/\s+/).length > MAX_WORDS || value === '' ? null : { name: key, value, line: text, offset };
}

function addPair(facts: FactCollector, { key, name: subject }: Section, { name, value, line, offset }: Pair): void {
  const place = { offset, passage: facts.addLine(line) };
  if (value.length < MIN_DEFINITION) {
    addValue(facts, { source: key, subject, name }, value, place);
    return;
  }
  const term = facts.addNode({ key: `${key}:term:${keyOf(name)}`, name, summary: value, labels: ['Term'], ...place });
  facts.addEdge({ name: 'defines', fact: `${name}: ${value}`, source: key, target: term, ...place });
}

/** Links of a document. More would outweigh what it says. */
const MAX_LINKS = 20;
const MAX_URL = 2_000;
/** Texts that say nothing of their target. */
const VAGUE =
  /^(?:home|index|here|this|link|click here|read more|more|see|source|details|hier|mehr|ici|aquí|más|здесь|这里|こちら|.?)$/iu;

/**
 * The pages of other sites that a document links to. Links within a site are its navigation: they would outnumber
 * everything else that its pages state.
 */
function addLinks(facts: FactCollector, content: Content): void {
  const site = content.url === null ? null : siteOf(content.url);
  const links = content.structured?.links ?? (content.contentType === 'text/markdown' ? markdownLinks(content) : []);
  const seen = new Set<string>();
  for (const { url, text, offset } of links as readonly (Link & { readonly offset?: number })[]) {
    if (seen.size >= MAX_LINKS) return;
    if (url.length > MAX_URL || seen.has(url) || (siteOf(url) ?? site) === site) continue;
    seen.add(url);
    const isVague = VAGUE.test(text) || isGeneric(comparable(text));
    const name = isVague ? url : text;
    facts.addEdge({
      name: 'links to',
      fact: isVague ? url : `${cut(name, 200)}: ${url}`,
      source: documentKey(content),
      target: facts.addNode({ key: `link:${url}`, name, summary: url, labels: ['Link'], offset: offset ?? null }),
      offset: offset ?? null,
    });
  }
}

/** Null for what is not a page. */
function siteOf(url: string): string | null {
  return /^https?:\/\/([^/?#]+)/i.exec(url)?.[1]?.toLowerCase() ?? null;
}

function markdownLinks({ text }: Content): (Link & { offset: number })[] {
  const links: (Link & { offset: number })[] = [];
  for (const { 0: link, 1: name = '', 2: url = '', index } of text.matchAll(MARKDOWN_LINK)) {
    if (links.length >= 10 * MAX_LINKS) break;
    if (!link.startsWith('!')) links.push({ url, text: plainText(name), offset: index });
  }
  return links;
}
