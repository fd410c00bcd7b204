import { saturated } from './bm25.ts';

/**
 * Ranks whole documents by the words of all their facts: a document with many matching facts, or with the words of the
 * query in different ones, is more likely to be about the query. Documents are given by their keys, -1 for none.
 */
export class DocumentScores {
  /** By document. */
  readonly #words: Float64Array;
  readonly #scores: Float64Array;
  readonly #weights: Float64Array;
  /** Of the word that is being counted. */
  readonly #occurrences: Float64Array;
  readonly #having: number[] = [];
  #documents = 0;
  #allWords = 0;

  /** @param size greater than all keys */
  constructor(size: number) {
    this.#words = new Float64Array(size);
    this.#scores = new Float64Array(size);
    this.#weights = new Float64Array(size);
    this.#occurrences = new Float64Array(size);
  }

  /** Counts the words of a fact. To be called for all facts before the first score. */
  addText(document: number, words: number): void {
    if (document === -1) return;
    if (this.#words[document] === 0) this.#documents += 1;
    this.#words[document]! += words;
    this.#allWords += words;
  }

  /** Adds up how often a fact has the current word. */
  addOccurrences(document: number, occurrences: number): void {
    if (document === -1) return;
    if (this.#occurrences[document] === 0) this.#having.push(document);
    this.#occurrences[document]! += occurrences;
  }

  /** Scores the current word; the next one begins. @param weight what the word counts */
  endWord(weight: number): void {
    for (const document of this.#having) {
      const relativeLength = ((this.#words[document] ?? 0) * this.#documents) / this.#allWords;
      this.#scores[document]! += weight * saturated(this.#occurrences[document] ?? 0, relativeLength);
      this.#weights[document]! += weight;
      this.#occurrences[document] = 0;
    }
    this.#having.length = 0;
  }

  /** @param allWeights of all words */
  scoreOf(document: number, allWeights: number): number {
    return ((this.#scores[document] ?? 0) * (this.#weights[document] ?? 0)) / allWeights;
  }
}
