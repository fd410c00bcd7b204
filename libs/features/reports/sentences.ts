/* Sentences of passages, which are Markdown or plain text. */

/** Characters of a sentence that is quoted. */
const MIN_SENTENCE = 15;
const MAX_SENTENCE = 400;
const MIN_WORDS = 3;

const SEGMENTER = new Intl.Segmenter('en', { granularity: 'sentence' });
/** Lines that are no text: headings and their underlines, rows of tables, comments, images. */
const NO_TEXT = /^\s*(?:#{1,6}\s|[|+]|=+\s*$|[-*_]{3,}\s*$|<!--|!\[)/;
const ITEM = /^\s*(?:[-*+]|\d{1,3}[.)])\s+/;
/** What a sentence begins with: neither a small letter nor a mark that belongs to the text before. */
const BEGINNING = /^[\p{Lu}\p{Lt}\p{Lo}\p{N}"'“„«‘¿¡([`$]/u;
const END = /[.!?。！？।؟…]["'”»’)\]]*$/u;
const ABBREVIATED = /(?:^|[\s(])(?:e\.g|i\.e|cf|vs|etc|approx|resp|z\.B|No|Nr|Fig|Mr|Mrs|Ms|Dr|St)\.["')]*$/;
/** Signs in a text, such as the operator `@?`, end no sentence. */
const OPERATOR = /\s[^\p{L}\p{N}\s.!?…]+[.!?]$/u;

/** Whole sentences as plain text, in their order. */
export function sentencesOf(passage: string): string[] {
  return blocksOf(passage).flatMap((block) => {
    const sentences: string[] = [];
    let open = '';
    for (const { segment } of SEGMENTER.segment(block)) {
      open += segment;
      if (ABBREVIATED.test(open.trim()) || OPERATOR.test(open.trim())) continue;
      sentences.push(open.trim());
      open = '';
    }
    if (open.trim() !== '') sentences.push(open.trim());
    return sentences.filter(isWhole);
  });
}

/** The text without Markdown, code and tables, on one line. */
export function plainTextOf(passage: string): string {
  return blocksOf(passage).join(' ');
}

function isWhole(sentence: string): boolean {
  if (sentence.length < MIN_SENTENCE || sentence.length > MAX_SENTENCE) return false;
  if (!BEGINNING.test(sentence) || !END.test(sentence)) return false;
  return sentence.split(/\s+/).length >= MIN_WORDS || /[^\p{Script=Latin}\p{P}\p{N}\s]/u.test(sentence);
}

/** Paragraphs and items of lists. */
function blocksOf(passage: string): string[] {
  const blocks: string[][] = [[]];
  let isCode = false;
  for (const line of passage.split('\n')) {
    const isFence = /^\s*(?:`{3,}|~{3,})/.test(line);
    if (isFence) isCode = !isCode;
    if (isFence || isCode || line.trim() === '' || NO_TEXT.test(line)) blocks.push([]);
    else if (ITEM.test(line)) blocks.push([line.replace(ITEM, '')]);
    else blocks.at(-1)?.push(line.trim());
  }
  return blocks.map((lines) => withoutMarkdown(lines.join(' '))).filter((block) => block !== '');
}

function withoutMarkdown(text: string): string {
  return text
    .replace(/!\[[^\]]*\]\([^)]*\)/g, '')
    .replace(/\[([^\]]*)\]\((?:<[^>]*>|[^)]*)\)/g, '$1')
    .replace(/(\*\*|__)(?=\S)(.+?)(?<=\S)\1/g, '$2')
    .replace(/(?<![\w*])\*(?=\S)([^*]+)(?<=\S)\*(?![\w*])/g, '$1')
    .replace(/`+([^`]+)`+/g, '$1')
    .replace(/\\([\\`*_{}[\]()#+\-.!<>|~])/g, '$1')
    .replace(/\s*\|\s*$/, '')
    .replace(/\s+\|\s+/g, ' – ')
    .replace(/\s+/g, ' ')
    .trim();
}
