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
  const highlights: Highlight[] = [];
  for (const part of parts) {
    const most = MAX_HIGHLIGHTS - highlights.length;
    if (most === 0) break;
    highlights.push(...excerptsOf(part, matchesIn(part.text, terms), most));
  }
  return highlights;
}

/** In their order, without overlaps, at boundaries of what readers see as characters. */
function matchesIn(text: string, terms: ReadonlySet<string>): Range[] {
  const found: Range[] = [];
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    const ranges = IS_UNSPACED.test(token) ? inUnspaced(token, terms) : inWord(token, terms);
    for (const { start, end } of ranges) found.push({ start: index + start, end: index + end });
  }
  const segments = found.length === 0 ? null : graphemes.segment(text);
  const merged: { start: number; end: number }[] = [];
  for (const range of found) {
    const last = segments?.containing(range.end - 1);
    const start = segments?.containing(range.start)?.index ?? range.start;
    const end = last === undefined ? range.end : last.index + last.segment.length;
    const before = merged.at(-1);
    if (before !== undefined && start <= before.end) before.end = Math.max(before.end, end);
    else merged.push({ start, end });
  }
  return merged;
}

function inWord(token: string, terms: ReadonlySet<string>): Range[] {
  const has = (text: string) => wordsOf(text).some((word) => terms.has(word));
  if (!has(token)) return [];
  const ranges: Range[] = [];
  let start = 0;
  for (const joint of [...token.matchAll(JOINT), null]) {
    const end = joint?.index ?? token.length;
    if (end > start && has(token.slice(start, end))) ranges.push({ start, end });
    start = end + (joint?.[0].length ?? 0);
  }
  return ranges.length > 0 ? ranges : [{ start: 0, end: token.length }];
}

/** Characters that are a word of the query, or a pair with their neighbour that is one. */
function inUnspaced(token: string, terms: ReadonlySet<string>): Range[] {
  const ranges: Range[] = [];
  const characters = [...token];
  let start = 0;
  for (const [at, character] of characters.entries()) {
    const next = characters[at + 1] ?? '';
    const isPair = next !== '' && wordsOf(character + next, 'pairs').some((word) => terms.has(word));
    const isWord = wordsOf(character).some((word) => terms.has(word));
    if (isPair || isWord) ranges.push({ start, end: start + character.length + (isPair ? next.length : 0) });
    start += character.length;
  }
  return ranges;
}

function excerptsOf({ item, member, text }: SearchedPart, matches: readonly Range[], most: number): Highlight[] {
  const highlights: Highlight[] = [];
  let rest = [...matches];
  do {
    const [first] = rest;
    const start = first === undefined ? 0 : startOfExcerpt(text, first.start);
    const end = Math.max(first?.end ?? 0, endOfExcerpt(text, start + EXCERPT));
    const within = rest.filter((range) => range.end <= end);
    rest = rest.slice(Math.max(1, within.length));
    const parts: { text: string; is_match: boolean }[] = [];
    let at = start;
    const add = (to: number, isMatch: boolean): void => {
      if (to > at) parts.push({ text: text.slice(at, to), is_match: isMatch });
      at = Math.max(at, to);
    };
    for (const range of within) {
      add(range.start, false);
      add(range.end, true);
    }
    add(end, false);
    highlights.push({ content_index: item, member, offset: start, parts });
  } while (rest.length > 0 && highlights.length < most);
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
