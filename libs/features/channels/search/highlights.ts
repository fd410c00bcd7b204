/* Where a message has the words of a query. The result are parts of its text, never markup. */
import { wordsOf } from '#libs/platform/textindex/index.ts';

import { type SearchedPart, searchedParts } from './message-text.ts';

/** Excerpts of one message. */
const MAX_HIGHLIGHTS = 3;
/** Of an excerpt, in UTF-16 code units; and of it before the first word that matches. */
const EXCERPT = 240;
const BEFORE = 60;

const UNSPACED = String.raw`\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー`;
const SPACED = String.raw`[[\p{L}\p{N}\p{M}_\u00ad\u200b-\u200f\u2060-\u2064\ufeff]--[${UNSPACED}]]+`;
/** Runs of scripts without spaces; words, with signs inside and behind them; emoji. */
const TOKEN = new RegExp(
  String.raw`[${UNSPACED}]+|${SPACED}(?:[\-.&‐‑]${SPACED})*(?:\+\+|#)?|\p{Extended_Pictographic}`,
  'gv',
);
const IS_UNSPACED = new RegExp(`^[${UNSPACED}]`, 'v');
const JOINT = /[-.&‐‑]+/g;

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

interface Range {
  readonly start: number;
  readonly end: number;
}

export interface Highlight {
  /** Index of the item in the content. */
  readonly content_index: number;
  /** Member of the item that the excerpt is of. */
  readonly member: string;
  /** Of the excerpt in the member, in UTF-16 code units. */
  readonly offset: number;
  readonly parts: readonly { readonly text: string; readonly is_match: boolean }[];
}

/**
 * Excerpts of a message around the words that count as words of the query; null if it has none of them.
 *
 * @param content of the message as it is shown @param terms words, as `wordsOf` gives them
 */
export function highlightsOf(content: unknown, terms: ReadonlySet<string>): Highlight[] | null {
  const parts = searchedParts(content).filter(({ text }) => wordsOf(text).some((word) => terms.has(word)));
  if (parts.length === 0) return null;
  const matcher = new Matcher(terms);
  const highlights: Highlight[] = [];
  for (const part of parts) {
    const most = MAX_HIGHLIGHTS - highlights.length;
    if (most === 0) break;
    highlights.push(...excerptsOf(part, matcher.matchesIn(part.text), most));
  }
  return highlights;
}

/**
 * Finds the words of a query in texts. A message may have thousands of matches, of which few are shown: reads no further
 * than its matches are taken, and decides about each word once.
 */
class Matcher {
  readonly #terms: ReadonlySet<string>;
  /** Signs that the words consist of, without composed ones. */
  readonly #signs: ReadonlySet<string>;
  readonly #known = new Map<string, boolean>();

  constructor(terms: ReadonlySet<string>) {
    this.#terms = terms;
    this.#signs = new Set([...terms].flatMap((term) => [...term.normalize('NFD')]));
  }

  /** In their order, without overlaps, at boundaries of what readers see as characters. */
  *matchesIn(text: string): Generator<Range, undefined> {
    const segments = graphemes.segment(text);
    let before: { start: number; end: number } | null = null;
    for (const range of this.#rangesIn(text)) {
      const start = segments.containing(range.start)?.index ?? range.start;
      const last = segments.containing(range.end - 1);
      const end = last === undefined ? range.end : last.index + last.segment.length;
      if (before !== null && start <= before.end) before.end = Math.max(before.end, end);
      else {
        if (before !== null) yield before;
        before = { start, end };
      }
    }
    if (before !== null) yield before;
  }

  *#rangesIn(text: string): Generator<Range, undefined> {
    for (const { 0: token, index } of text.matchAll(TOKEN)) {
      const ranges = IS_UNSPACED.test(token) ? this.#inUnspaced(token) : this.#inWord(token);
      for (const { start, end } of ranges) yield { start: index + start, end: index + end };
    }
  }

  #inWord(token: string): Range[] {
    if (!this.#has(token)) return [];
    const ranges: Range[] = [];
    let start = 0;
    for (const joint of [...token.matchAll(JOINT), null]) {
      const end = joint?.index ?? token.length;
      if (end > start && this.#has(token.slice(start, end))) ranges.push({ start, end });
      start = end + (joint?.[0].length ?? 0);
    }
    return ranges.length > 0 ? ranges : [{ start: 0, end: token.length }];
  }

  /** Characters that are a word of the query, or a pair with their neighbour that is one. */
  *#inUnspaced(token: string): Generator<Range, undefined> {
    const characters = [...token];
    let start = 0;
    for (const [at, character] of characters.entries()) {
      const pair = character + (characters[at + 1] ?? '');
      // Most pairs have no sign in common with the query, and need no closer look.
      if ([...pair.normalize('NFKD')].some((sign) => this.#signs.has(sign))) {
        const isPair = pair !== character && this.#has(pair, 'pairs');
        if (isPair || this.#has(character)) yield { start, end: start + (isPair ? pair : character).length };
      }
      start += character.length;
    }
  }

  #has(text: string, unspaced: 'each' | 'pairs' = 'each'): boolean {
    const key = `${unspaced} ${text}`;
    let has = this.#known.get(key);
    if (has === undefined) {
      has = wordsOf(text, unspaced).some((word) => this.#terms.has(word));
      this.#known.set(key, has);
    }
    return has;
  }
}

function excerptsOf(
  { item, member, text }: SearchedPart,
  matches: Iterator<Range, undefined>,
  most: number,
): Highlight[] {
  const highlights: Highlight[] = [];
  let match = matches.next().value;
  do {
    const start = match === undefined ? 0 : startOfExcerpt(text, match.start);
    const end = Math.max(match?.end ?? 0, endOfExcerpt(text, start + EXCERPT));
    const parts: { text: string; is_match: boolean }[] = [];
    let at = start;
    const add = (to: number, isMatch: boolean): void => {
      if (to > at) parts.push({ text: text.slice(at, to), is_match: isMatch });
      at = Math.max(at, to);
    };
    for (; match !== undefined && match.end <= end; match = matches.next().value) {
      add(match.start, false);
      add(match.end, true);
    }
    add(end, false);
    highlights.push({ content_index: item, member, offset: start, parts });
  } while (match !== undefined && highlights.length < most);
  return highlights;
}

/** A little before a match, after a space if there is one, and never within a character. */
function startOfExcerpt(text: string, match: number): number {
  const start = match - BEFORE;
  if (start <= 0) return 0;
  const space = text.slice(start, match).search(/\s\S/);
  return space === -1 ? (graphemes.segment(text).containing(start)?.index ?? start) : start + space + 1;
}

function endOfExcerpt(text: string, end: number): number {
  return end >= text.length ? text.length : (graphemes.segment(text).containing(end)?.index ?? end);
}
