/** The forms in which models cite numbered sources, besides the one that they are asked for, `[1]`. */

const WORD =
  'sources?|src|citations?|cite|refs?|references?|docs?|documents?|id|quellen?|fuentes?|fontes?|fonti|来源|來源|文献|出典|資料|资料';
const AND = '[,;，、；]|&|and|und|et|y|e';
/** A number, or a range of numbers. */
const NUMBER = String.raw`#?\d{1,3}(?:\s*[-–—]\s*\d{1,3})?`;
const LIST = String.raw`${NUMBER}(?:\s*(?:${AND})\s*(?:(?:${WORD})[\s:：#.]*)?${NUMBER}){0,30}`;
/** Details that may follow within the brackets: `†source`, `†L5-L9`, a page. */
const DETAIL = String.raw`(?:\s*[†‡|][^\]］】〕)\n]{0,120}|\s*[,:]?\s*(?:pp?|S|§|L)\.?\s*\d[\d\s,–-]{0,20})?`;

/**
 * One citation, in brackets of one kind or another: `[1]`, `[1, 2]`, `[[1]]`, `[^1]`, `[1-3]`, `[Source 1]`, `[citation:1]`,
 * `【1†source】`, `［1］`; in parentheses only with a word, as `(source 1)`. The first group is the list of numbers; it is
 * missing for a number of a message and one in it, `【4:0†source】`, which is none of the sources that a model was given.
 */
const FORM =
  String.raw`[[［【〔]{1,2}\s*\^?(?:(?:${WORD})[\s:：#.]*)?(?:(${LIST})${DETAIL}|\d{1,3}:\d{1,3}†[^\]］】〕\n]{0,120})\^?\s*[\]］】〕]{1,2}` +
  String.raw`|\(\s*(?:${WORD})[\s:：#.]*(${LIST})\s*\)`;

export interface Citation {
  readonly index: number;
  readonly length: number;
  /** Each once, in their order. */
  readonly numbers: readonly number[];
}

/** A range that is longer names nothing in particular. */
const MAX_RANGE = 20;

export function citationsIn(text: string): Citation[] {
  return [...text.matchAll(new RegExp(FORM, 'giu'))].map((match) => ({
    index: match.index,
    length: match[0].length,
    numbers: numbersIn(match[1] ?? match[2] ?? ''),
  }));
}

/** Whether the text is a citation and nothing else, with or without its brackets. */
export function isCitation(text: string): boolean {
  return new RegExp(String.raw`^\s*(?:${FORM}|\^?(?:(?:${WORD})[\s:：#.]*)?${LIST}\^?)\s*$`, 'iu').test(text);
}

/** Whether the text begins with a citation, as the entries of a list of sources do. */
export function beginsWithCitation(text: string): boolean {
  return new RegExp(String.raw`^\s*(?:${FORM})`, 'iu').test(text);
}

export function numbersIn(list: string): number[] {
  const numbers = [...list.matchAll(/(\d{1,3})(?:\s*[-–—]\s*(\d{1,3}))?/g)].flatMap(([, from, to]) => {
    const [first, last] = [Number(from), Number(to ?? from)];
    const isRange = last >= first && last - first < MAX_RANGE;
    return isRange ? Array.from({ length: last - first + 1 }, (_, index) => first + index) : [first, last];
  });
  return [...new Set(numbers)];
}
