/* The words that a query asks for, and how much of them a text has. */
import { allowedTypos, queryWords, stemOf, typosBetween, wordsOf } from '#libs/platform/textindex/index.ts';

import type { Term } from './finding.ts';

/** Words of questions that carry no subject, besides those that search leaves out. */
const QUESTION_WORDS = new Set(
  (
    'am best between compare describe difference different each every exactly example examples explain find give going ' +
    'happen happened happening happens help just know like list main many more most much need overview please problem ' +
    'question really report say says summarise summarize summary tell thing things used way ways work working works'
  ).split(' '),
);
/** Words that begin with a word of this length or more count as the word. */
const MIN_PREFIX = 4;

/** The words of a query that are its subjects; all of its words if none of them is a subject. */
export function subjectWords(query: string): string[] {
  const words = queryWords(query);
  const subjects = words.filter((word) => !QUESTION_WORDS.has(word) && !/^[a-z]$/.test(word));
  return subjects.length > 0 ? subjects : words;
}

/** @param having facts that have the word; @param all facts of the graphs */
export function weightOf(having: number, all: number): number {
  return Math.round(Math.sqrt(Math.log(2 + all / (having + 1))) * 1_000) / 1_000;
}

/** How a word occurs in the texts of what a search for it has found. */
export function occurrenceOf(word: string, texts: readonly string[]): Pick<Term, 'found' | 'correction'> {
  const words = new Set(texts.flatMap((text) => wordsOf(text)));
  if ([...words].some((one) => isSameWord(one, word))) return { found: 'exact', correction: null };
  let best: { readonly one: string; readonly typos: number } | null = null;
  for (const one of [...words].sort()) {
    const typos = typosBetween(word, one, allowedTypos(word));
    if (typos <= allowedTypos(word) && typos < (best?.typos ?? Infinity)) best = { one, typos };
  }
  return best === null ? { found: 'none', correction: null } : { found: 'similar', correction: best.one };
}

function isSameWord(one: string, word: string): boolean {
  return one === word || stemOf(one) === stemOf(word) || (word.length >= MIN_PREFIX && one.startsWith(word));
}

/** Counts of the words of a query in texts. */
export class Terms {
  readonly terms: readonly Term[];
  readonly #weight: number;
  readonly #known = new Map<string, readonly number[]>();

  constructor(terms: readonly Term[]) {
    this.terms = terms;
    this.#weight = terms.reduce((sum, { weight }) => sum + weight, 0);
  }

  /** Indexes of the terms that occur in a text. */
  in(text: string): Set<number> {
    return new Set(wordsOf(text).flatMap((word) => this.#termsOf(word)));
  }

  weightOf(indexes: Iterable<number>): number {
    return [...indexes].reduce((sum, index) => sum + (this.terms[index]?.weight ?? 0), 0);
  }

  /** Weight of the words that a text has side by side, as the query has them. */
  phraseWeight(text: string): number {
    let weight = 0;
    let before: readonly number[] = [];
    for (const word of wordsOf(text)) {
      const own = this.#termsOf(word);
      for (const index of own) if (before.includes(index - 1)) weight += this.weightOf([index - 1, index]);
      before = own;
    }
    return weight;
  }

  /** The share of the query that a text has: 0 to 1. */
  share(text: string): number {
    return this.#weight === 0 ? 0 : this.weightOf(this.in(text)) / this.#weight;
  }

  #termsOf(word: string): readonly number[] {
    let known = this.#known.get(word);
    if (known === undefined) {
      known = this.terms.flatMap((term, index) => (isSameWord(word, term.correction ?? term.word) ? index : []));
      this.#known.set(word, known);
    }
    return known;
  }
}
