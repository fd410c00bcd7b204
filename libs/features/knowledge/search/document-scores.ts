import { inMeanLength, saturated } from '#libs/platform/textindex/index.ts';

import type { TextTotals } from './text-totals.ts';

/**
 * Ranks whole documents by the words of all their facts: a document with many matching facts, or with the words of the
 * query in different ones, is more likely to be about the query. Documents are given by their keys, -1 for none.
 */
export class DocumentScores {
  readonly #totals: TextTotals['documents'];
  /** By document. */
  readonly #scores: Float64Array;
  readonly #weights: Float64Array;
  /** Of the word that is being counted. */
  readonly #occurrences: Float64Array;
  readonly #having: number[] = [];

  constructor(totals: TextTotals['documents']) {
    const size = totals.wordsOf.length;
    this.#totals = totals;
    this.#scores = new Float64Array(size);
    this.#weights = new Float64Array(size);
    this.#occurrences = new Float64Array(size);
  }

  /** Adds up how often a fact has the current word. */
  addOccurrences(document: number, occurrences: number): void {
    if (document === -1) return;
    if (this.#occurrences[document] === 0) this.#having.push(document);
    this.#occurrences[document]! += occurrences;
  }

  /** Scores the current word; the next one begins. @param weight what the word counts */
  endWord(weight: number): void {
    const { count, words, wordsOf } = this.#totals;
    for (const document of this.#having) {
      const relativeLength = ((wordsOf[document] ?? 0) * count) / words;
      this.#scores[document]! += weight * saturated(inMeanLength(this.#occurrences[document] ?? 0, relativeLength));
      this.#weights[document]! += weight;
      this.#occurrences[document] = 0;
    }
    this.#having.length = 0;
  }

  /** @param weight of all words @param share exponent of the part of it that the document has */
  of(document: number, { weight, share }: { readonly weight: number; readonly share: number }): number {
    return (this.#scores[document] ?? 0) * ((this.#weights[document] ?? 0) / weight) ** share;
  }
}
