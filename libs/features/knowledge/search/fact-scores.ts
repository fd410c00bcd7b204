import {
  type IndexFile,
  inMeanLength,
  rarityOf,
  saturated,
  type Variant,
  visitPostings,
} from '#libs/platform/textindex/index.ts';
import { type Columns, EDGE, type Kind, NODE } from './columns.ts';

/** Weight of an occurrence, by field. */
const IN_NAME = 8;
const IN_SUMMARY = 1;
const IN_PASSAGE = 1;
/** Weight of the match of the whole document, beside that of the fact. */
const DOCUMENT_SHARE = 0.5;
/** Facts with this many words of a long query count as much as those with all words of a query of this length. */
const ENOUGH_WORDS = 3;
/** Postings that a query reads before it leaves out further words and variants: about 0.1 s. */
const MAX_POSTINGS = 5_000_000;

/** A word of a query that the index has terms for. */
export interface QueryWord {
  /** How often the query has it. */
  readonly count: number;
  readonly variants: readonly Variant[];
}

/** Memory that queries of a thread use in turn; zero between them. */
export class Scratch {
  /** By row, for the word that is being counted: occurrences, and how well they match. */
  occurrences = new Float32Array();
  matches = new Float32Array();
  /** By row, for all words: the score, and the weight of the words that the row has. */
  scores = new Float64Array();
  weights = new Float64Array();
  /** By item: its best row so far, plus one. */
  bestRow = new Int32Array();

  reserve(rows: number, items: number): void {
    if (rows > this.scores.length) {
      this.occurrences = new Float32Array(rows * 2);
      this.matches = new Float32Array(rows * 2);
      this.scores = new Float64Array(rows * 2);
      this.weights = new Float64Array(rows * 2);
    }
    if (items > this.bestRow.length) this.bestRow = new Int32Array(items * 2);
  }
}

/** Scores facts that are present at a revision by the words of a query. Every word is added before the first score. */
export class FactScores {
  /** Of the facts that have any of the words. */
  readonly rows: number[] = [];
  readonly #file: IndexFile;
  readonly #columns: Columns;
  readonly #revision: number;
  readonly #lastRow: number;
  readonly #scratch: Scratch;
  readonly #totals: TextTotals;
  /** Of the nodes. Edges are sentences, which rank by what they say themselves. */
  readonly #documents: DocumentScores;
  #postings = 0;
  #words = 0;
  /** Of all words. */
  #weight = 0;

  constructor(index: { readonly file: IndexFile; readonly columns: Columns }, revision: number, scratch: Scratch) {
    this.#file = index.file;
    this.#columns = index.columns;
    this.#revision = revision;
    this.#lastRow = index.columns.lastRowAt(revision);
    this.#scratch = scratch;
    this.#totals = textTotals(index.columns, revision);
    this.#documents = new DocumentScores(this.#totals.documents);
  }

  add({ count, variants }: QueryWord): void {
    this.#words += 1;
    if (this.#postings >= MAX_POSTINGS) return;
    const having: number[] = [];
    try {
      this.#match(variants, having);
      this.#score(having, count);
    } finally {
      for (const row of having) this.#scratch.occurrences[row] = this.#scratch.matches[row] = 0;
    }
  }

  /** Finds the rows that have a word, and how well they match it: by the best of its variants. */
  #match(variants: readonly Variant[], having: number[]): void {
    const { occurrences, matches } = this.#scratch;
    const { item, kind, nameWords, words } = this.#columns;
    const [ofNodes, ofEdges] = this.#totals.kinds;
    for (const { term, weight } of variants) {
      if (this.#postings >= MAX_POSTINGS) break;
      this.#postings += visitPostings(this.#file, { term, lastRow: this.#lastRow }, (row, counts) => {
        const { perNameWord, perTextWord } = kind[item[row]!] === EDGE ? ofEdges : ofNodes;
        const inName = IN_NAME * countInName(counts);
        const inText = IN_SUMMARY * countInSummary(counts) + IN_PASSAGE * countInPassage(counts);
        let relevant = 0;
        if (inName > 0) relevant += inMeanLength(inName, nameWords[row]! * perNameWord);
        if (inText > 0) relevant += inMeanLength(inText, words[row]! * perTextWord);
        const match = weight * saturated(relevant);
        if (matches[row] === 0) having.push(row);
        if (match > matches[row]!) matches[row] = match;
        if (weight * (inName + inText) > occurrences[row]!) occurrences[row] = weight * (inName + inText);
      });
    }
  }

  #score(having: readonly number[], repetitions: number): void {
    const { occurrences, matches, scores, weights } = this.#scratch;
    const present = having.filter((row) => this.#columns.isPresent(row, this.#revision));
    const counts = [0, 0];
    for (const row of present) counts[this.#kindOf(row)]! += 1;
    // A word that the query repeats counts more, but less than as many words.
    const factor = Math.sqrt(repetitions);
    const weightOf = this.#totals.kinds.map(({ count }, kind) => factor * rarityOf(counts[kind]!, count));
    for (const row of present) {
      const kind = this.#kindOf(row);
      const weight = weightOf[kind]!;
      if (scores[row] === 0) this.rows.push(row);
      scores[row]! += weight * matches[row]!;
      weights[row]! += weight;
      if (kind === NODE) this.#documents.addOccurrences(this.#columns.document[row] ?? -1, occurrences[row]!);
    }
    this.#documents.endWord(weightOf[NODE]!);
    this.#weight += Math.max(...weightOf);
  }

  /** Adds a fact whatever words it has: further words may have been left out. */
  include(row: number): void {
    if (this.#scratch.scores[row] === 0) this.rows.push(row);
  }

  /** Many of the query's words count more than few of them often. A fact without a document is one of its own. */
  of(row: number): number {
    const share = Math.min(1, ENOUGH_WORDS / this.#words);
    const score = this.#scratch.scores[row]! * (this.#scratch.weights[row]! / this.#weight) ** share;
    if (this.#kindOf(row) === EDGE) return score;
    const document = this.#columns.document[row] ?? -1;
    const ofDocument = document === -1 ? score : this.#documents.of(document, { weight: this.#weight, share });
    return score + DOCUMENT_SHARE * ofDocument;
  }

  #kindOf(row: number): Kind {
    return this.#columns.kindOf(this.#columns.item[row] ?? 0);
  }
}

/**
 * Ranks whole documents by the words of all their facts: a document with many matching facts, or with the words of the
 * query in different ones, is more likely to be about the query. Documents are given by their keys, -1 for none.
 */
class DocumentScores {
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

/** Facts of one kind that are present at a revision, and the reciprocals of the mean lengths of their texts. */
interface KindTotals {
  readonly count: number;
  readonly perNameWord: number;
  readonly perTextWord: number;
}

/** How many facts and documents there are at a revision, and how long their texts are: what lengths are compared with. */
interface TextTotals {
  readonly kinds: readonly [nodes: KindTotals, edges: KindTotals];
  readonly documents: {
    readonly count: number;
    readonly words: number;
    /** By document: the words of its nodes. */
    readonly wordsOf: Float64Array;
  };
}

/** The last totals of each index: most queries ask for its end. */
const known = new WeakMap<Columns, { readonly revision: number; readonly totals: TextTotals }>();

function textTotals(columns: Columns, revision: number): TextTotals {
  const last = known.get(columns);
  // Later events do not change what was present at a revision.
  if (last?.revision === revision) return last.totals;
  const totals = count(columns, revision);
  known.set(columns, { revision, totals });
  return totals;
}

function count(columns: Columns, revision: number): TextTotals {
  const facts = [0, 0];
  const nameWords = [1, 1];
  const textWords = [1, 1];
  const wordsOf = new Float64Array(columns.documents);
  let [documents, words] = [0, 0];
  const lastRow = columns.lastRowAt(revision);
  for (let row = 0; row <= lastRow; row++) {
    if (!columns.isPresent(row, revision)) continue;
    const kind = columns.kindOf(columns.item[row]!);
    facts[kind]! += 1;
    nameWords[kind]! += columns.nameWords[row]!;
    textWords[kind]! += columns.words[row]!;
    const document = columns.document[row]!;
    if (kind === EDGE || document === -1) continue;
    if (wordsOf[document] === 0) documents += 1;
    wordsOf[document]! += columns.nameWords[row]! + columns.words[row]!;
    words += columns.nameWords[row]! + columns.words[row]!;
  }
  const totalsOf = (kind: typeof NODE | typeof EDGE): KindTotals => ({
    count: facts[kind]!,
    perNameWord: facts[kind]! / nameWords[kind]!,
    perTextWord: facts[kind]! / textWords[kind]!,
  });
  return { kinds: [totalsOf(NODE), totalsOf(EDGE)], documents: { count: documents, words, wordsOf } };
}

/** Fields of a fact, and where their counts are in a byte: 2 bits for names and summaries, 4 for passages. */
export const FIELDS = { name: { shift: 0, max: 3 }, summary: { shift: 2, max: 3 }, passage: { shift: 4, max: 15 } };

/** Counts another occurrence of a term in a field. */
export function counted(counts: number, { shift, max }: (typeof FIELDS)['name']): number {
  return ((counts >> shift) & max) === max ? counts : counts + (1 << shift);
}

const countInName = (counts: number): number => counts & 3;
const countInSummary = (counts: number): number => (counts >> 2) & 3;
const countInPassage = (counts: number): number => counts >> 4;
