/** The lists of sources that models write below their texts, although they are asked not to: a report has its own. */
import type { Nodes, RootContent } from 'mdast';

import { beginsWithCitation, citationsIn } from './citation-forms.ts';

export interface KnownSource {
  readonly name: string;
  readonly url: string | null;
}

const WORDS = String.raw`(?:(?:list of |cited |used )?(?:sources?|references?|citations?|bibliography|works cited|footnotes?|further reading)(?: (?:used|cited|list))?|quellen(?:verzeichnis|angaben)?|literatur(?:verzeichnis)?|einzelnachweise|fuentes|referencias|bibliograf[ií]a|r[ée]f[ée]rences|bibliographie|fonti|riferimenti|refer[êe]ncias|fontes|bronnen|источники|литература|参考文献|参考资料|参考資料|來源|来源|出典|引用|출처|참고문헌|المصادر|المراجع)`;
const TITLE = new RegExp(String.raw`^\W*(?:\d+[.)]\s*)?${WORDS}\W*$`, 'iu');
/** A title on the line of its list. */
const TITLE_OF_LINE = new RegExp(String.raw`^\s*${WORDS}\s*[:：]\s*`, 'iu');
const HAS_URL = /https?:\/\/|\bwww\./i;

/** The blocks without lists of sources: below a title for them, or at the end. */
export function withoutSourceList(blocks: readonly RootContent[], sources: readonly KnownSource[]): RootContent[] {
  const kept: RootContent[] = [];
  for (let at = 0; at < blocks.length; at += 1) {
    const node = blocks[at]!;
    const end = TITLE.test(titleOf(node) ?? '') ? endOfSection(blocks, at) : at;
    const entries = blocks.slice(at + 1, end).flatMap(entriesOf);
    if (end > at && entries.every((entry) => isEntry(entry, sources))) at = end - 1;
    else kept.push(node);
  }
  return withoutListAtEnd(kept, sources);
}

/** A list without a title: its entries begin with their numbers. */
function withoutListAtEnd(blocks: readonly RootContent[], sources: readonly KnownSource[]): RootContent[] {
  let end = blocks.length;
  while (end > 0) {
    const node = blocks[end - 1]!;
    const entries = entriesOf(node);
    const isList = entries.length > 0 && entries.every((entry) => isListed(entry, sources));
    const isNumbered = entries.length > 1 && isAscending(entries);
    if (node.type !== 'thematicBreak' && !isList && !isNumbered) break;
    end -= 1;
  }
  return blocks.slice(0, end);
}

function isListed(entry: string, sources: readonly KnownSource[]): boolean {
  const text = entry.replace(TITLE_OF_LINE, '');
  return beginsWithCitation(text) && (text !== entry || namesSource(text, sources));
}

function isAscending(entries: readonly string[]): boolean {
  const numbers = entries.map((entry) => (beginsWithCitation(entry) ? (citationsIn(entry)[0]?.numbers ?? []) : []));
  return numbers.every((own, index) => own.length === 1 && own[0]! > (numbers[index - 1]?.[0] ?? -1));
}

/** Of a heading, or a paragraph that is nothing but a title: bold, or with a colon. */
function titleOf(node: RootContent): string | null {
  if (node.type === 'heading') return plainOf(node);
  if (node.type !== 'paragraph') return null;
  const text = plainOf(node).trim();
  const [only, ...others] = node.children;
  return (only?.type === 'strong' && others.length === 0) || text.endsWith(':') || text.endsWith('：') ? text : null;
}

function endOfSection(blocks: readonly RootContent[], at: number): number {
  const own = blocks[at]!;
  const depth = own.type === 'heading' ? own.depth : 6;
  const next = blocks.findIndex((node, index) => index > at && node.type === 'heading' && node.depth <= depth);
  return next === -1 ? blocks.length : next;
}

/** The items of lists, the lines of paragraphs, the rows of tables. */
function entriesOf(node: RootContent): string[] {
  if (node.type === 'list' || node.type === 'table') return node.children.map(plainOf);
  if (node.type === 'thematicBreak' || node.type === 'definition') return [];
  return plainOf(node)
    .split('\n')
    .filter((line) => line.trim() !== '');
}

/** A statement has its citation at its end, and names nothing that a list of sources does. */
function isEntry(text: string, sources: readonly KnownSource[]): boolean {
  return beginsWithCitation(text) || citationsIn(text).length === 0 || namesSource(text, sources);
}

function namesSource(text: string, sources: readonly KnownSource[]): boolean {
  return HAS_URL.test(text) || sources.some(({ name }) => name !== '' && text.includes(name));
}

function plainOf(node: Nodes): string {
  if (node.type === 'footnoteReference') return `[^${node.label ?? node.identifier}]`;
  if (node.type === 'break') return '\n';
  if ('value' in node) return node.value;
  if (node.type === 'link') return `${node.children.map(plainOf).join('')} ${node.url}`;
  return 'children' in node ? node.children.map(plainOf).join(node.type === 'listItem' ? '\n' : '') : '';
}
