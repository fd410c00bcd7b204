/* Sentences of passages, which are Markdown or plain text. */
import type { Paragraph, PhrasingContent, RootContent } from 'mdast';
import { fromMarkdown } from 'mdast-util-from-markdown';

/** Characters of a sentence that is quoted. One of a script that writes words or syllables says as much as several. */
const MIN_SENTENCE = 15;
const LETTERS_OF_WORDS = /\p{Script=Han}/gu;
const LETTERS_OF_SYLLABLES = /[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/gu;
const MAX_SENTENCE = 400;
const MIN_WORDS = 3;

/** Markdown that is nested deeper than any real text: the parser takes time that grows with the square of the depth. */
const NESTED = /^(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])[ \t])){15}/m;
const SEGMENTER = new Intl.Segmenter('en', { granularity: 'sentence' });
/** Rows of a table, also without its head. */
const ROW = /^\s*\|/;
/** Signs that code has and language has hardly, and how many of the other signs of a sentence they may be. */
const CODE_SIGNS = /[{}[\]<>()=|&;*\\^~@#$+/!?_]/g;
const MAX_CODE_SIGNS = 0.15;
/** The first character of a sentence: neither a small letter nor a mark that belongs to the text before. */
const BEGINNING = /^[\p{Lu}\p{Lt}\p{Lo}\p{N}\p{Ps}\p{Pi}"'`$„¿¡]/u;
const ENDS = '.!?。．｡！？।॥؟…۔։።။។';
const END = new RegExp(`[${ENDS}]["'\\p{Pe}\\p{Pf}]*$`, 'u');
/** Marks of footnotes behind the end of a sentence: `[12]`, `[note 1]`, `[^1]`, `¹`, `†`, and `[3]:45`. */
const FOOTNOTES = new RegExp(
  `(?<=[${ENDS}]["'\\p{Pe}\\p{Pf}]*)(?:\\[[^[\\]\\n]{1,30}\\]|[¹²³⁰-⁹†‡*])+(?::\\d{1,5})?(?=\\s|$|[^\\x00-\\xff])`,
  'gu',
);
/** An opening bracket or quotation mark right behind the end of a sentence, as in scripts without spaces. */
const OPENING = new RegExp(`(?<=[${ENDS}])[\\p{Ps}\\p{Pi}]`, 'gu');
const ABBREVIATED = /(?:^|[\s(])(?:e\.g|i\.e|cf|vs|etc|approx|resp|z\.B|No|Nr|Fig|Mr|Mrs|Ms|Dr|St)\.["')]*$/;
/** Signs in a text, such as the operator `@?`, end no sentence. */
const OPERATOR = /\s[^\p{L}\p{N}\s.!?…]+[.!?]$/u;

/** Whole sentences as plain text, in their order. */
export function sentencesOf(passage: string): string[] {
  return blocksOf(passage).flatMap((block) => {
    const sentences: string[] = [];
    let open = '';
    for (const { segment } of segmentsOf(block)) {
      open += segment;
      if (ABBREVIATED.test(open.trim()) || OPERATOR.test(open.trim())) continue;
      sentences.push(open.trim());
      open = '';
    }
    if (open.trim() !== '') sentences.push(open.trim());
    return sentences.filter(isWhole);
  });
}

/** The segmenter would end a sentence within the mark of a footnote, and count an opening quotation mark to the one before. */
function segmentsOf(block: string): { readonly segment: string }[] {
  const masked = block.replace(FOOTNOTES, (mark) => ')'.repeat(mark.length)).replace(OPENING, 'あ');
  return [...SEGMENTER.segment(masked)].map(({ segment, index }) => ({
    segment: block.slice(index, index + segment.length),
  }));
}

/** The text without Markdown, code and tables, on one line. */
export function plainTextOf(passage: string): string {
  return blocksOf(passage).join(' ');
}

function isWhole(quoted: string): boolean {
  const sentence = quoted.replace(FOOTNOTES, '');
  const syllables = sentence.match(LETTERS_OF_SYLLABLES)?.length ?? 0;
  const length = sentence.length + 2 * syllables + 3 * (sentence.match(LETTERS_OF_WORDS)?.length ?? 0);
  if (length < MIN_SENTENCE || sentence.length > MAX_SENTENCE) return false;
  if (!BEGINNING.test(sentence) || !END.test(sentence) || isCode(sentence)) return false;
  return sentence.split(/\s+/).length >= MIN_WORDS || /[^\p{Script=Latin}\p{P}\p{N}\s]/u.test(sentence);
}

function isCode(sentence: string): boolean {
  const signs = sentence.match(CODE_SIGNS)?.length ?? 0;
  return signs > MAX_CODE_SIGNS * sentence.replace(/\s+/g, '').length;
}

/** Paragraphs, also those of lists and quotations. Code, HTML, headings and tables are none. */
function blocksOf(passage: string): string[] {
  if (NESTED.test(passage)) return [];
  return paragraphsIn(fromMarkdown(passage).children)
    .map((paragraph) =>
      textOf(paragraph.children)
        .split('\n')
        .filter((line) => !ROW.test(line))
        .join(' '),
    )
    .map((text) =>
      text
        .replace(/\s*\|\s*$/, '')
        .replace(/\s+\|\s+/g, ' – ')
        .replace(/\s+/g, ' ')
        .trim(),
    )
    .filter((block) => block !== '');
}

function paragraphsIn(nodes: readonly RootContent[]): Paragraph[] {
  return nodes.flatMap((node) => {
    if (node.type === 'paragraph') return [node];
    return node.type === 'list' || node.type === 'listItem' || node.type === 'blockquote'
      ? paragraphsIn(node.children)
      : [];
  });
}

function textOf(nodes: readonly PhrasingContent[]): string {
  return nodes
    .map((node) => {
      if (node.type === 'text' || node.type === 'inlineCode') return node.value;
      if (node.type === 'break') return '\n';
      return 'children' in node ? textOf(node.children) : '';
    })
    .join('');
}
