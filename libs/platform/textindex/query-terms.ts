/** Finds the terms of an index that a word of a query stands for. */
import type { IndexFile } from './index-file.ts';
import { reversed, stemOf } from './tokens.ts';

/** A term that counts as a word of the query, and how much a match of it is worth: 1 for the word itself. */
export interface Variant {
  readonly term: number;
  readonly weight: number;
}

const STEM_WEIGHT = 0.8;
const PREFIX_WEIGHT = 0.4;
const TYPO_WEIGHTS = [1, 0.7, 0.5];

const MAX_STEMS = 12;
const MAX_PREFIXES = 10;
const MAX_CORRECTIONS = 5;
/** Terms of each kind that are tried where some do not count. */
const MAX_EXAMINED = 1_000;
/** Terms that are compared with a word that the index does not have, of those with the same beginning or end. */
const MAX_COMPARED = 20_000;
const MIN_PREFIX = 2;
/** After all strings that begin with what it follows. */
const END_OF_PREFIX = '\u{10ffff}';

/**
 * The word itself, its inflections and longer words that begin with it; without any of them, words that it may be
 * misspelled from. Only terms that occur up to a row count, and terms are chosen by what never changes: the result for
 * that row stays the same as rows are added.
 *
 * @param has whether a term counts, for callers that may see only a part of the rows; default: every term does
 */
export function variantsOf(
  file: IndexFile,
  word: string,
  lastRow: number,
  has: ((term: number) => boolean) | null = null,
): readonly Variant[] {
  const weights = new Map<number, number>();
  const add = (weight: number, most: number, sql: string, ...values: (string | number)[]): void => {
    let added = 0;
    for (const [value] of file.rows(`${sql} limit ${has === null ? most : MAX_EXAMINED}`, ...values)) {
      const term = Number(value);
      if (has?.(term) === false) continue;
      if (!weights.has(term)) weights.set(term, weight);
      added += 1;
      if (added === most) return;
    }
  };
  add(1, 1, 'select id from term where term = ? and first <= ?', word, lastRow);
  const stems = 'select id from term where stem = ? and first <= ? order by first, term';
  add(STEM_WEIGHT, MAX_STEMS, stems, stemOf(word), lastRow);
  if (word.length >= MIN_PREFIX) {
    const prefixes = 'select id from term where term > ? and term < ? and first <= ? order by length(term), term';
    add(PREFIX_WEIGHT, MAX_PREFIXES, prefixes, word, word + END_OF_PREFIX, lastRow);
  }
  if (weights.size > 0) return [...weights].map(([term, weight]) => ({ term, weight }));
  return corrections(file, word, lastRow, has);
}

/** Compares words with the same beginning or the same end: of a word with few typos, one of both is mostly right. */
function corrections(
  file: IndexFile,
  word: string,
  lastRow: number,
  has: ((term: number) => boolean) | null,
): readonly Variant[] {
  const max = allowedTypos(word);
  if (max === 0) return [];
  const shared = Math.max(1, Math.floor(word.length / (max + 1)) - 1);
  const found = new Map<number, { readonly term: string; readonly typos: number }>();
  for (const [field, text] of [
    ['term', word],
    ['reversed', reversed(word)],
  ] as const) {
    const start = text.slice(0, shared);
    const sql = `select id, term from term where ${field} >= ? and ${field} < ? and first <= ?
      and length(term) between ? and ? order by ${field} limit ${MAX_COMPARED}`;
    const sizes = [word.length - max, word.length + max];
    for (const [id, term] of file.rows(sql, start, start + END_OF_PREFIX, lastRow, ...sizes)) {
      const typos = typosBetween(word, String(term), max);
      if (typos <= max) found.set(Number(id), { term: String(term), typos });
    }
  }
  const corrected: Variant[] = [];
  const nearest = [...found].sort(([, one], [, other]) => one.typos - other.typos || (one.term < other.term ? -1 : 1));
  for (const [term, { typos }] of nearest) {
    if (corrected.length === MAX_CORRECTIONS) break;
    if (has?.(term) !== false) corrected.push({ term, weight: TYPO_WEIGHTS[typos] ?? 0 });
  }
  return corrected;
}

/** Characters that a word may differ by from what was meant: none below 4, 1 below 8, else 2. */
export function allowedTypos(word: string): number {
  return word.length < 4 ? 0 : word.length < 8 ? 1 : 2;
}

/**
 * Typos between two words, each an inserted, omitted, replaced or transposed character (optimal string alignment); a
 * number greater than `max` if there are more than `max`.
 */
export function typosBetween(one: string, other: string, max: number): number {
  if (Math.abs(one.length - other.length) > max) return max + 1;
  let before: number[] = [];
  let above = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    let least = i;
    for (let j = 1; j <= other.length; j++) {
      const same = one[i - 1] === other[j - 1];
      let typos = Math.min((above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (above[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) {
        typos = Math.min(typos, (before[j - 2] ?? 0) + 1);
      }
      row.push(typos);
      least = Math.min(least, typos);
    }
    if (least > max) return max + 1;
    before = above;
    above = row;
  }
  return above[other.length] ?? max + 1;
}
