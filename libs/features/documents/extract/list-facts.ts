import { admitText } from '#libs/kernel/text.ts';

import type { FactCollector } from './fact-collector.ts';
import { isRemark } from './generic-headings.ts';
import { plainText, type Line, type MarkdownBlock } from './markdown.ts';
import type { Section } from './section-facts.ts';
import { addValue, keyOf } from './value-facts.ts';

const PAIR = /^(?!\w+:\/\/)([^:：\n]{1,80})[:：](?:\s+|(?<=：))(\S.*)$/u;
const MAX_WORDS = 8;
/** Longer texts define a term; shorter ones are the value of a property. */
const MIN_DEFINITION = 60;
/**
 * Lists of `key: value`, which state properties of their section, and lists of `term: definition`, which define terms.
 * Text counts as such a list only if each of its lines has this form; of a list, most of its items have to.
 */
export function addLists(facts: FactCollector, section: Section): void {
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
