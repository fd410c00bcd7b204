/*
 * Ranks the items of a graph. Everything that a rank depends on is counted as of the point, so that a query as of the past
 * gives what it gave then.
 */
import { type IndexFile, nameNumber, nameParts } from '#libs/platform/textindex/index.ts';

import { TopItems, bestOfDocuments, type Ranked, type Ranking } from './top-items.ts';
import { type Columns, EDGE, NODE, type Point } from './columns.ts';
import { FactScores, type QueryWord, Scratch } from './fact-scores.ts';

export type Rankings = readonly [nodes: Ranking, edges: Ranking];

interface Matching {
  readonly words: readonly QueryWord[];
  readonly query: string;
  readonly nearest?: Rankings | null;
}

const scratch = new Scratch();

export class Ranker {
  readonly #file: IndexFile;
  readonly #columns: Columns;
  readonly #point: Point;
  readonly #lastRow: number;
  readonly #limit: number;

  constructor(file: IndexFile, columns: Columns, { point, limit }: { readonly point: Point; readonly limit: number }) {
    this.#file = file;
    this.#columns = columns;
    this.#point = point;
    this.#lastRow = columns.lastRowAt(point.revision);
    this.#limit = limit;
    scratch.reserve(columns.rows, columns.items);
  }

  /** All items, newest first. */
  newest(): Rankings {
    const { bestRow } = scratch;
    const items: number[] = [];
    for (let row = 0; row <= this.#lastRow; row++) {
      const item = this.#columns.item[row] ?? 0;
      if (bestRow[item] !== 0 || !this.#columns.isPresent(row, this.#point.revision)) continue;
      if (!this.#columns.isTrue(item, this.#point)) continue;
      bestRow[item] = 1;
      items.push(item);
    }
    const best = [this.#best(), this.#best()] as const;
    for (const item of items) {
      bestRow[item] = 0;
      best[this.#columns.kindOf(item)].add({ item, score: this.#columns.createdMs(item), row: -1 });
    }
    return [best[NODE].ranking, best[EDGE].ranking];
  }

  /** Items that have any of the words. The totals also count those of `nearest` that have none. */
  matching({ words, query, nearest = null }: Matching): Rankings {
    const { scores, weights, bestRow } = scratch;
    const facts = new FactScores({ file: this.#file, columns: this.#columns }, this.#point.revision, scratch);
    const items: number[] = [];
    try {
      // 1. Score the facts that have any of the words. Those that are named as the query come before all others.
      for (const word of words) facts.add(word);
      const named = this.#namedAs(query);
      for (const row of named) facts.include(row);
      for (const row of facts.rows) scores[row] = facts.of(row);
      // 2. Find the best fact of each item.
      for (const row of facts.rows) {
        const item = this.#columns.item[row] ?? 0;
        const best = bestRow[item]! - 1;
        if (best === -1) items.push(item);
        if (best === -1 || scores[row]! > scores[best]!) bestRow[item] = row + 1;
      }
      // 3. Rank nodes with their documents, and edges that are true.
      const namedItems = new Set(named.map((row) => this.#columns.item[row] ?? 0));
      const nodes: Ranked[] = [];
      const edges = this.#best();
      for (const item of items) {
        const row = bestRow[item]! - 1;
        const ranked = { item, score: scores[row]!, row };
        if (this.#columns.kindOf(item) === NODE) nodes.push({ ...ranked, isNamed: namedItems.has(item) });
        else if (this.#columns.isTrue(item, this.#point)) edges.add(ranked);
      }
      const best = [bestOfDocuments(nodes, { limit: this.#limit, columns: this.#columns }), edges.ranking] as const;
      // 4. Count the nearest items that have none of the words.
      const wordless = (kind: typeof NODE | typeof EDGE): number =>
        nearest?.[kind].best.filter(({ item }) => bestRow[item] === 0).length ?? 0;
      const counted = (kind: typeof NODE | typeof EDGE) => ({
        ...best[kind],
        total: best[kind].total + wordless(kind),
      });
      return [counted(NODE), counted(EDGE)];
    } finally {
      // 5. Leave the scratch memory as it was, for the next query.
      for (const row of facts.rows) scores[row] = weights[row] = 0;
      for (const item of items) bestRow[item] = 0;
    }
  }

  /** Rows of nodes whose name is the query. */
  #namedAs(query: string): readonly number[] {
    const [name] = nameParts(query);
    const rows = this.#file.rows('select row from fact where named = ? and row <= ?', nameNumber(name), this.#lastRow);
    return [...rows].map(([row]) => Number(row)).filter((row) => this.#columns.isPresent(row, this.#point.revision));
  }

  #best(): TopItems {
    return new TopItems(this.#limit, this.#columns.order);
  }
}
