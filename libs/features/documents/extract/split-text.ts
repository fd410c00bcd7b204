/** Characters of a passage. */
export const MAX_PASSAGE = 1_500;

export interface Range {
  readonly start: number;
  readonly end: number;
}

/** Works for languages without spaces, too. */
const SENTENCES = new Intl.Segmenter('en', { granularity: 'sentence' });

/**
 * Splits a part of a text into ranges of at most MAX_PASSAGE characters without surrounding white space: between
 * paragraphs, else lines, sentences or words.
 */
export function splitText(text: string, start: number, end: number): Range[] {
  const ranges: Range[] = [];
  for (let from = skipSpace(text, start, end); from < end;) {
    const to = end - from <= MAX_PASSAGE ? end : from + cutOf(text.slice(from, from + MAX_PASSAGE));
    ranges.push({ start: from, end: from + text.slice(from, to).trimEnd().length });
    from = skipSpace(text, to, end);
  }
  return ranges;
}

function skipSpace(text: string, from: number, end: number): number {
  const space = /\S/g;
  space.lastIndex = from;
  const at = space.exec(text)?.index ?? end;
  return Math.min(at, end);
}

function cutOf(window: string): number {
  const least = MAX_PASSAGE / 3;
  for (const boundary of ['\n\n', '\n']) {
    const at = window.lastIndexOf(boundary);
    if (at > least) return at;
  }
  let sentence = 0;
  for (const { index } of SENTENCES.segment(window)) sentence = index;
  if (sentence > least) return sentence;
  const word = window.lastIndexOf(' ');
  if (word > least) return word;
  const last = window.charCodeAt(window.length - 1);
  return last >= 0xd800 && last < 0xdc00 ? window.length - 1 : window.length;
}
