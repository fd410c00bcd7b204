/** Splits text into the words that the index stores. The same for texts and queries; the version of the index covers it. */

import { createHash } from 'node:crypto';

import { stemmer } from 'stemmer';

import { admitText } from '#libs/kernel/text.ts';

/** Scripts without spaces between words: each character, and each pair of neighbours, is a word. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー]/u;
const UNSPACED_RUN = new RegExp(`${UNSPACED.source}+|[^]`, 'gu');
/**
 * Words, with `_` inside, joined by signs that are written within compounds (`Wi-Fi`, `node.js`, `AT&T`), and with the signs
 * of languages such as `C++` and `C#`; and emoji, without the modifiers that follow them.
 */
const WORD =
  /[\p{L}\p{N}\p{M}_]+(?:[-.&‐‑][\p{L}\p{N}\p{M}_]+)*(?:(?<=\p{L})(?:\+\+(?![\p{L}_+])|#(?![\p{L}\p{N}_#])))?|\p{Extended_Pictographic}/gu;
const ASCII_WORD = /[a-z0-9_]+(?:[-.&][a-z0-9_]+)*(?:(?<=[a-z])(?:\+\+(?![a-z_+])|#(?![a-z0-9_#])))?/g;
const JOINED = /[-.&‐‑]/;
const JOINTS = /[-.&‐‑]+/;
const SIGNED = /(?:\+\+|#)$/;
// oxlint-disable-next-line no-control-regex -- the range of ASCII
const ASCII = /^[\0-\x7f]*$/;
/** Soft hyphens, zero-width characters and marks of direction, which neither hide nor split a word. */
const INVISIBLE = /[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/g;
/** Accents of Latin, Greek and Cyrillic; vowel marks of Hebrew and Arabic; the Arabic stretching character. */
const MARKS = /[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0640]/g;

/** Longer words are cut: they are data rather than language. */
export const MAX_WORD = 40;

/**
 * Words of a text in their order, compatibility forms, case and accents folded. An identifier with underscores is a word
 * itself, and so are its parts. A compound gives its parts, and before them the word that it is without its signs: `wifi`
 * for `Wi-Fi`. A name of several letters with signs is a word with and without them: `notepad++`, but only `c++`.
 *
 * @param unspaced `each` gives the characters and the pairs of a script without spaces, `pairs` prefers pairs
 */
export function wordsOf(text: string, unspaced: 'each' | 'pairs' = 'each'): string[] {
  const words: string[] = [];
  if (ASCII.test(text)) {
    for (const word of text.toLowerCase().match(ASCII_WORD) ?? []) addCompound(words, word);
    return words;
  }
  for (const word of folded(text).match(WORD) ?? []) {
    if (UNSPACED.test(word)) addUnspaced(words, word, unspaced);
    else addCompound(words, word);
  }
  return words;
}

function folded(text: string): string {
  const lower = admitText(text).replace(INVISIBLE, '').normalize('NFKC').toLowerCase().replaceAll('ß', 'ss');
  return lower.normalize('NFD').replace(MARKS, '').normalize('NFC');
}

function addCompound(words: string[], compound: string): void {
  if (!JOINED.test(compound)) {
    addSigned(words, compound);
    return;
  }
  const parts = compound.split(JOINTS);
  // Numbers that signs separate, such as dates, are no compound.
  if (parts.some((part) => /\D/.test(part))) words.push(cut(parts.join('').replaceAll('_', '')));
  for (const part of parts) addSigned(words, part);
}

function addSigned(words: string[], word: string): void {
  if (SIGNED.test(word)) words.push(cut(word));
  const bare = word.replace(SIGNED, '');
  if (bare === word || bare.length > 1) addWord(words, bare);
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
  for (const rest of text.split(new RegExp(`${UNSPACED.source}+`, 'u')))
    for (const compound of rest.match(WORD) ?? []) addCompound(words, compound);
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
/** Different words of a query that count: of more, those of its beginning and of its end, where messages ask. */
export const MAX_QUERY_WORDS = 32;

/** English contractions, whose parts would be words: `don't` as a whole, and the end of `what's`. */
const CONTRACTIONS = /(?<!\p{L})\p{L}+n['’]t(?!\p{L})|(?<=\p{L})['’](?:s|re|ve|ll|d|m)(?!\p{L})/giu;

/** The different words of a query, and how often it has each. Empty for a query without any: punctuation, or nothing. */
export function queryWordCounts(query: string): ReadonlyMap<string, number> {
  const text = admitText(query, MAX_QUERY_CHARACTERS);
  const whole = wordsOf(text.replace(CONTRACTIONS, ' '), 'pairs');
  const words = whole.length > 0 ? whole : wordsOf(text, 'pairs');
  const subjects = words.filter((word) => !isStopWord(word));
  const counts = new Map<string, number>();
  for (const word of subjects.length > 0 ? subjects : words) counts.set(word, (counts.get(word) ?? 0) + 1);
  if (counts.size <= MAX_QUERY_WORDS) return counts;
  const half = MAX_QUERY_WORDS / 2;
  return new Map([...counts].filter((_, at) => at < half || at >= counts.size - half));
}

/** Different words of a query. */
export function queryWords(query: string): string[] {
  return [...queryWordCounts(query).keys()];
}

/** A signature or a name with an explanation, as `open(file, mode)` and `Mercury (planet)`: the name, and the details. */
const DETAILED = /^([^(]*[^(\s])\s*\(([^]*)\)\s*$/;

/** The name proper in the name of a node, and the details in parentheses that follow it; empty without any. */
export function nameParts(name: string): readonly [name: string, details: string] {
  const [, called, details] = DETAILED.exec(name) ?? [];
  return called === undefined || details === undefined ? [name, ''] : [called, details];
}

/** Equal for names that differ in case, accents and punctuation only: 48 bits of a hash. Null without any word. */
export function nameNumber(name: string): number | null {
  const words = wordsOf(admitText(name, MAX_NAME_CHARACTERS));
  return words.length === 0 ? null : createHash('sha256').update(words.join(' ')).digest().readUIntBE(0, 6);
}

const ARABIC_ARTICLE = /^(?:وال|بال|كال|فال|لل|ال)(?=.{3})/u;
/** British endings that American English, which the stemmer knows, writes with `z`. */
const BRITISH = /is(?=(?:ations?|e[ds]?|ing)$)/;
/** Endings that Porter's stemmer leaves to words with one more syllable: `movement`, `creation`. And a final `e`. */
const LEFT_BY_STEMMER = /(?<=^.{4,})ment$|(?<=^.{4,}t)ion$/;
const FINAL_E = /(?<=^.{3,})e$/;

/** The same for most inflections of a word: `indexes`, `indexing` and `index`. Not a word itself. */
export function stemOf(word: string): string {
  if (!/^[a-z]{4,}$/.test(word)) return word.replace(ARABIC_ARTICLE, '');
  const american = word.length > 6 ? word.replace(BRITISH, 'iz') : word;
  return stemmer(american).replace(LEFT_BY_STEMMER, '').replace(FINAL_E, '');
}

export function reversed(word: string): string {
  return [...word].toReversed().join('');
}
