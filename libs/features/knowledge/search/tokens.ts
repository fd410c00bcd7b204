/** Splits text into the words that the index stores. The same for texts and queries; the version of the index covers it. */

import { createHash } from 'node:crypto';

import { admitText } from '#libs/kernel/text.ts';

/** Scripts without spaces between words: each character, and each pair of neighbours, is a word. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー]/u;
const UNSPACED_RUN = new RegExp(`${UNSPACED.source}+|[^]`, 'gu');
/** Words, with `_` inside; and emoji, without the modifiers that follow them. */
const WORD = /[\p{L}\p{N}\p{M}_]+|\p{Extended_Pictographic}/gu;
const ASCII_WORD = /[a-z0-9_]+/g;
// oxlint-disable-next-line no-control-regex -- the range of ASCII
const ASCII = /^[\0-\x7f]*$/;
/** Accents of Latin, Greek and Cyrillic; vowel marks of Hebrew and Arabic; the Arabic stretching character. */
const MARKS = /[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0640]/g;

/** Longer words are cut: they are data rather than language. */
export const MAX_WORD = 40;

/**
 * Words of a text in their order, compatibility forms, case and accents folded. An identifier with underscores is a word
 * itself, and so are its parts.
 *
 * @param unspaced `each` gives the characters and the pairs of a script without spaces, `pairs` prefers pairs
 */
export function wordsOf(text: string, unspaced: 'each' | 'pairs' = 'each'): string[] {
  const words: string[] = [];
  if (ASCII.test(text)) {
    for (const word of text.toLowerCase().match(ASCII_WORD) ?? []) addWord(words, word);
    return words;
  }
  for (const word of folded(text).match(WORD) ?? []) {
    if (UNSPACED.test(word)) addUnspaced(words, word, unspaced);
    else addWord(words, word);
  }
  return words;
}

function folded(text: string): string {
  const lower = admitText(text).normalize('NFKC').toLowerCase().replaceAll('ß', 'ss');
  return lower.normalize('NFD').replace(MARKS, '').normalize('NFC');
}

function addWord(words: string[], word: string): void {
  if (!word.includes('_')) {
    words.push(word.length > MAX_WORD ? cut(word) : word);
    return;
  }
  const parts = word.split('_').filter((part) => part !== '');
  if (parts.length > 1) words.push(cut(parts.join('_')));
  for (const part of parts) words.push(cut(part));
}

function addUnspaced(words: string[], text: string, unspaced: 'each' | 'pairs'): void {
  for (const run of text.match(UNSPACED_RUN) ?? []) {
    if (!UNSPACED.test(run)) continue;
    const characters = [...run];
    if (unspaced === 'each' || characters.length === 1) words.push(...characters);
    for (let at = 0; at + 1 < characters.length; at++) words.push(`${characters[at]}${characters[at + 1]}`);
  }
  // The rest of a mixed word, such as a Latin abbreviation.
  for (const rest of text.split(new RegExp(`${UNSPACED.source}+`, 'u'))) if (rest !== '') addWord(words, rest);
}

function cut(word: string): string {
  return admitText(word, MAX_WORD);
}

/** Words that carry no subject in English. A query leaves them out unless it has no others. */
const STOP_WORDS = new Set(
  (
    'a about all also an and any are as at be been being but by can could did do does for from get give has have how i ' +
    'if in into is it its let may me my no not of on one or our should so some such than that the their them then ' +
    'there these they this those to too under up us use used using want was way we were what when where which while ' +
    'who whom whose why will with would you your'
  ).split(' '),
);

/** Whether a word carries no subject. Of English. */
export function isStopWord(word: string): boolean {
  return STOP_WORDS.has(word);
}

/** A longer query is cut: the length of a text that a person types. */
const MAX_QUERY_CHARACTERS = 4_000;
/** Longer names differ before. */
const MAX_NAME_CHARACTERS = 256;
/** Different words of a query that count. */
export const MAX_QUERY_WORDS = 16;

/** English contractions, whose parts would be words: `don't` as a whole, and the end of `what's`. */
const CONTRACTIONS = /(?<!\p{L})\p{L}+n['’]t(?!\p{L})|(?<=\p{L})['’](?:s|re|ve|ll|d|m)(?!\p{L})/giu;

/** Different words of a query. Empty for a query without any: punctuation, or nothing. */
export function queryWords(query: string): string[] {
  const text = admitText(query, MAX_QUERY_CHARACTERS);
  const whole = [...new Set(wordsOf(text.replace(CONTRACTIONS, ' '), 'pairs'))];
  const words = whole.length > 0 ? whole : [...new Set(wordsOf(text, 'pairs'))];
  const subjects = words.filter((word) => !isStopWord(word));
  return (subjects.length > 0 ? subjects : words).slice(0, MAX_QUERY_WORDS);
}

/** Equal for names that differ in case, accents and punctuation only: 48 bits of a hash. Null without any word. */
export function nameNumber(name: string): number | null {
  const words = wordsOf(admitText(name, MAX_NAME_CHARACTERS));
  return words.length === 0 ? null : createHash('sha256').update(words.join(' ')).digest().readUIntBE(0, 6);
}

/** Endings of English inflections, longest first, and what replaces them. */
const ENDINGS: readonly (readonly [string, string])[] = [
  ['izations', 'iz'],
  ['isations', 'iz'],
  ['ization', 'iz'],
  ['isation', 'iz'],
  ['ations', 'at'],
  ['ation', 'at'],
  ['ating', 'at'],
  ['ated', 'at'],
  ['ates', 'at'],
  ['ate', 'at'],
  ['izing', 'iz'],
  ['ising', 'iz'],
  ['ized', 'iz'],
  ['ised', 'iz'],
  ['izes', 'iz'],
  ['ises', 'iz'],
  ['ize', 'iz'],
  ['ise', 'iz'],
  ['ments', 'm'],
  ['ment', 'm'],
  ['ions', ''],
  ['ion', ''],
  ['ings', ''],
  ['ing', ''],
  ['ies', 'y'],
  ['ied', 'y'],
  ['edly', ''],
  ['ers', ''],
  ['ed', ''],
  ['es', ''],
  ['ly', ''],
  ['er', ''],
  ['s', ''],
  ['e', ''],
];
const ARABIC_ARTICLE = /^(?:وال|بال|كال|فال|لل|ال)(?=.{3})/u;
const MIN_STEM = 3;

/** The same for most inflections of a word: `indexes`, `indexing` and `index`. Not a word itself. */
export function stemOf(word: string): string {
  if (!/^[a-z]{4,}$/.test(word)) return word.replace(ARABIC_ARTICLE, '');
  for (const [ending, replacement] of ENDINGS) {
    const stem = word.length - ending.length;
    if (stem < MIN_STEM || !word.endsWith(ending) || (ending === 's' && word.endsWith('ss'))) continue;
    return singleEnd(word.slice(0, stem) + replacement);
  }
  return singleEnd(word);
}

/** `stopp` -> `stop`, `quer(y)` and `queri` -> `query`. */
function singleEnd(stem: string): string {
  const last = stem.at(-1) ?? '';
  if (last === 'i') return `${stem.slice(0, -1)}y`;
  return last === stem.at(-2) && !'aeiou'.includes(last) && stem.length > MIN_STEM ? stem.slice(0, -1) : stem;
}

export function reversed(word: string): string {
  return [...word].toReversed().join('');
}
