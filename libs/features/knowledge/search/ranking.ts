/*
 * Ranks the items of a graph. Everything that a rank depends on is counted as of the point, so that a query as of the past
 * gives what it gave then.
 */
import { Best, bestOfDocuments, type Ranked, type Ranking } from './best.ts';
import { rarityOf, saturated } from './bm25.ts';
import { type Columns, EDGE, type Kind, NODE, type Point } from './columns.ts';
import { DocumentScores } from './document-scores.ts';
import type { IndexFile } from './index-file.ts';
import { countInName, countInPassage, countInSummary, visitPostings } from './postings.ts';
import type { Variant } from './query-terms.ts';
import { nameNumber } from './tokens.ts';

/** What an occurrence is worth, by field. */
const IN_NAME = 8;
const IN_SUMMARY = 1;
const IN_PASSAGE = 1;
/** What the match of the whole document counts, beside that of the fact. */
const DOCUMENT_SHARE = 0.5;
/** Postings that a query reads before it leaves out further words and variants: about 0.1 s. */
const MAX_POSTINGS = 5_000_000;

export type Rankings = readonly [nodes: Ranking, edges: Ranking];

interface Matching {
  /** The variants of each. */
  readonly words: readonly (readonly Variant[])[];
  readonly query: string;
  readonly nearest?: Rankings | null;
}

interface Found {
  /** Of all words. */
  readonly allWeights: number;
  /** Items whose name is the query. */
  readonly named: ReadonlySet<number>;
  readonly nearest: Rankings | null;
}

/** Memory that queries of a thread use in turn; zero between them. */
class Scratch {
  /** By row: of the word that is being counted; of all words; and the weight of the words that the row has. */
  occurrences = new Float32Array();
  scores = new Float64Array();
  weights = new Float64Array();
  /** By item: its best row so far, plus one. */
  bestRow = new Int32Array();

  reserve(rows: number, items: number): void {
    if (rows > this.occurrences.length) {
      this.occurrences = new Float32Array(rows * 2);
      this.scores = new Float64Array(rows * 2);
      this.weights = new Float64Array(rows * 2);
    }
    if (items > this.bestRow.length) this.bestRow = new Int32Array(items * 2);
  }
}

const scratch = new Scratch();

/** Facts of one kind that are present at the point. */
interface Collection {
  count: number;
  words: number;
}

export class Ranker {
  readonly #file: IndexFile;
  readonly #columns: Columns;
  readonly #point: Point;
  readonly #lastRow: number;
  readonly #limit: number;
  /** Of the nodes. Edges are sentences, which rank by what they say themselves. */
  readonly #documents: DocumentScores;

  constructor(file: IndexFile, columns: Columns, { point, limit }: { readonly point: Point; readonly limit: number }) {
    this.#file = file;
    this.#columns = columns;
    this.#point = point;
    this.#lastRow = columns.lastRowAt(point.revision);
    this.#limit = limit;
    this.#documents = new DocumentScores(columns.documents);
    scratch.reserve(columns.rows, columns.items);
  }

  /** All items, newest first. */
  newest(): Rankings {
    const { bestRow } = scratch;
    const items: number[] = [];
    for (let row = 0; row <= this.#lastRow; row++) {
      const item = this.#columns.item[row] ?? 0;
      if (bestRow[item] !== 0 || !this.#isVisible(row)) continue;
      bestRow[item] = 1;
      items.push(item);
    }
    const best = [this.#best(), this.#best()] as const;
    for (const item of items) {
      bestRow[item] = 0;
      best[this.#kindOf(item)].add({ item, score: this.#columns.createdMs(item), row: -1 });
    }
    return [best[NODE].ranking, best[EDGE].ranking];
  }

  /** Items that have any of the words. The totals also count those of `nearest` that have none. */
  matching({ words, query, nearest = null }: Matching): Rankings {
    const collections = this.#collections();
    const rows: number[] = [];
    let postings = 0;
    let allWeights = 0;
    for (const variants of words) {
      if (postings >= MAX_POSTINGS) break;
      const matches: number[] = [];
      for (const variant of variants) {
        if (postings < MAX_POSTINGS) postings += this.#count(variant, matches);
      }
      allWeights += this.#score(matches, collections, rows);
    }
    const named = this.#namedAs(query);
    // Those that were left out because of too many postings.
    for (const row of named.rows) if (scratch.scores[row] === 0) rows.push(row);
    return this.#rank(rows, { allWeights, named: named.items, nearest });
  }

  /** Nodes whose name is the query. */
  #namedAs(query: string): { readonly rows: readonly number[]; readonly items: ReadonlySet<number> } {
    const sql = 'select row from fact where named = ? and row <= ?';
    const found = [...this.#file.rows(sql, nameNumber(query), this.#lastRow)].map(([row]) => Number(row));
    const rows = found.filter((row) => this.#columns.isPresent(row, this.#point.revision));
    return { rows, items: new Set(rows.map((row) => this.#columns.item[row] ?? 0)) };
  }

  #count({ term, weight }: Variant, matches: number[]): number {
    const { occurrences } = scratch;
    return visitPostings(this.#file, { term, lastRow: this.#lastRow }, (row, counts) => {
      const count =
        weight *
        (IN_NAME * countInName(counts) + IN_SUMMARY * countInSummary(counts) + IN_PASSAGE * countInPassage(counts));
      const known = occurrences[row] ?? 0;
      if (known === 0) matches.push(row);
      if (count > known) occurrences[row] = count;
    });
  }

  /** Adds the score of one word to the rows that have it. @returns the weight of the word */
  #score(matches: readonly number[], collections: readonly [Collection, Collection], rows: number[]): number {
    const { occurrences, scores, weights } = scratch;
    const columns = this.#columns;
    const present = matches.filter((row) => columns.isPresent(row, this.#point.revision));
    const having = [0, 0];
    for (const row of present) having[this.#kindOfRow(row)]! += 1;
    const rarity = collections.map(({ count }, kind) => rarityOf(having[kind] ?? 0, count));
    for (const row of present) {
      const kind = this.#kindOfRow(row);
      const { count, words } = collections[kind];
      const occurring = occurrences[row] ?? 0;
      const weight = rarity[kind] ?? 0;
      if (scores[row] === 0) rows.push(row);
      scores[row]! += weight * saturated(occurring, ((columns.words[row] ?? 0) * count) / words);
      weights[row]! += weight;
      if (kind === NODE) this.#documents.addOccurrences(columns.document[row] ?? -1, occurring);
    }
    this.#documents.endWord(rarity[NODE] ?? 0);
    for (const row of matches) occurrences[row] = 0;
    return Math.max(...rarity);
  }

  #rank(rows: readonly number[], { allWeights, named, nearest }: Found): Rankings {
    const { scores, weights, bestRow } = scratch;
    const items: number[] = [];
    for (const row of rows) {
      scores[row] = this.#finalScore(row, allWeights);
      const item = this.#columns.item[row] ?? 0;
      const best = (bestRow[item] ?? 0) - 1;
      if (best === -1) items.push(item);
      if (best === -1 || (scores[row] ?? 0) > (scores[best] ?? 0)) bestRow[item] = row + 1;
    }
    const wordless = nearest?.map(({ best }) => best.filter(({ item }) => bestRow[item] === 0).length);
    const nodes: Ranked[] = [];
    const edges = this.#best();
    edges.total = wordless?.[EDGE] ?? 0;
    for (const item of items) {
      const row = (bestRow[item] ?? 0) - 1;
      const ranked = { item, score: scores[row] ?? 0, row };
      bestRow[item] = 0;
      if (this.#kindOf(item) === NODE) nodes.push({ ...ranked, isNamed: named.has(item) });
      else if (this.#columns.isTrue(item, this.#point)) edges.add(ranked);
    }
    for (const row of rows) {
      scores[row] = 0;
      weights[row] = 0;
    }
    const ofDocuments = bestOfDocuments(nodes, { limit: this.#limit, columns: this.#columns });
    return [{ ...ofDocuments, total: ofDocuments.total + (wordless?.[NODE] ?? 0) }, edges.ranking];
  }

  /** Many of the query's words count more than few of them often. A fact without a document is one of its own. */
  #finalScore(row: number, allWeights: number): number {
    const score = ((scratch.scores[row] ?? 0) * (scratch.weights[row] ?? 0)) / allWeights;
    if (this.#kindOfRow(row) === EDGE) return score;
    const document = this.#columns.document[row] ?? -1;
    return score + DOCUMENT_SHARE * (document === -1 ? score : this.#documents.scoreOf(document, allWeights));
  }

  #collections(): [Collection, Collection] {
    const collections: [Collection, Collection] = [
      { count: 0, words: 1 },
      { count: 0, words: 1 },
    ];
    for (let row = 0; row <= this.#lastRow; row++) {
      if (!this.#columns.isPresent(row, this.#point.revision)) continue;
      const kind = this.#kindOfRow(row);
      const words = this.#columns.words[row] ?? 0;
      collections[kind].count += 1;
      collections[kind].words += words;
      if (kind === NODE) this.#documents.addText(this.#columns.document[row] ?? -1, words);
    }
    return collections;
  }

  #isVisible(row: number): boolean {
    return this.#columns.isPresent(row, this.#point.revision) && this.#isTrue(this.#columns.item[row] ?? 0);
  }

  #isTrue(item: number): boolean {
    return this.#kindOf(item) === NODE || this.#columns.isTrue(item, this.#point);
  }

  #kindOf(item: number): Kind {
    return this.#columns.kind[item] === EDGE ? EDGE : NODE;
  }

  #kindOfRow(row: number): Kind {
    return this.#kindOf(this.#columns.item[row] ?? 0);
  }

  #best(): Best {
    return new Best(this.#limit, this.#columns.order);
  }
}
