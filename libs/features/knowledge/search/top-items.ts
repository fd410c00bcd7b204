/** Keeps the best items of a ranking. Equals are ordered by their ids. */
import type { Columns } from './columns.ts';

/** A further fact of the same document counts this much of what it would without the one before it. */
const FURTHER_FACT = 0.7;

export interface Ranked {
  readonly item: number;
  readonly score: number;
  /** Its fact that matches best; -1 in a list of the newest. */
  readonly row: number;
  /** Its name is the query: it comes before all others. */
  readonly isNamed?: boolean;
}

export interface Ranking {
  readonly total: number;
  readonly best: readonly Ranked[];
}

export class TopItems {
  readonly #limit: number;
  readonly #order: Float64Array;
  readonly #items: Ranked[] = [];
  total = 0;

  constructor(limit: number, order: Float64Array) {
    this.#limit = limit;
    this.#order = order;
  }

  add(ranked: Ranked): void {
    this.total += 1;
    const worst = this.#items.at(-1);
    if (this.#items.length === this.#limit && worst !== undefined && !this.#isBefore(ranked, worst)) return;
    const at = this.#items.findIndex((other) => this.#isBefore(ranked, other));
    this.#items.splice(at === -1 ? this.#items.length : at, 0, ranked);
    if (this.#items.length > this.#limit) this.#items.pop();
  }

  get ranking(): Ranking {
    return { total: this.total, best: this.#items };
  }

  #isBefore(one: Ranked, other: Ranked): boolean {
    if (one.isNamed !== other.isNamed) return one.isNamed === true;
    if (one.score !== other.score) return one.score > other.score;
    const difference = (this.#order[one.item] ?? 0) - (this.#order[other.item] ?? 0);
    return difference === 0 ? one.item < other.item : difference < 0;
  }
}

/**
 * The best of many documents: the second fact of a document counts less than it would alone, the third one even less, so
 * that one document does not fill the answer.
 */
export function bestOfDocuments(
  found: readonly Ranked[],
  { limit, columns }: { readonly limit: number; readonly columns: Columns },
): Ranking {
  const lowest = lowestOfAnswer(found, limit, columns);
  const documents = new Map<number, TopItems>();
  const best = new TopItems(limit, columns.order);
  for (const ranked of found) {
    if (ranked.score < lowest && ranked.isNamed !== true) continue;
    const document = columns.document[ranked.row] ?? -1;
    if (document === -1) best.add(ranked);
    else {
      const known = documents.get(document) ?? new TopItems(limit, columns.order);
      documents.set(document, known);
      known.add(ranked);
    }
  }
  for (const { ranking } of documents.values()) {
    for (const [place, ranked] of ranking.best.entries()) {
      best.add({ ...ranked, score: ranked.score * FURTHER_FACT ** place });
    }
  }
  return { total: found.length, best: best.ranking.best };
}

/** A score that facts below it do not reach the answer with: so many documents have a better one. */
function lowestOfAnswer(found: readonly Ranked[], limit: number, columns: Columns): number {
  const ofDocuments = new Float64Array(columns.documents);
  const scores: number[] = [];
  for (const { row, score } of found) {
    const document = columns.document[row] ?? -1;
    if (document === -1) scores.push(score);
    else ofDocuments[document] = Math.max(ofDocuments[document] ?? 0, score);
  }
  for (const score of ofDocuments) if (score > 0) scores.push(score);
  return Float64Array.from(scores).toSorted().at(-limit) ?? 0;
}

/** How slowly the share of a place falls, as in "Reciprocal Rank Fusion" (Cormack et al. 2009). */
const FLATNESS = 60;

/**
 * The best of two rankings by reciprocal rank: an item counts by its places, whatever the scores mean. Equals are ordered by
 * their ids. `total` is that of the words, to which the ranker has added the nearest items without any.
 */
export function fused(
  words: Ranking,
  nearest: Ranking,
  { limit, columns }: { readonly limit: number; readonly columns: Pick<Columns, 'order'> },
): Ranking {
  const found = new Map<number, Ranked>();
  for (const { best } of [words, nearest]) {
    for (const [place, ranked] of best.entries()) {
      const known = found.get(ranked.item);
      const share = 1 / (FLATNESS + place + 1);
      found.set(
        ranked.item,
        known === undefined ? { ...ranked, score: share } : { ...known, score: known.score + share },
      );
    }
  }
  const orderOf = ({ item }: Ranked): number => columns.order[item] ?? 0;
  const best = [...found.values()].sort(
    (one, other) =>
      Number(other.isNamed ?? false) - Number(one.isNamed ?? false) ||
      other.score - one.score ||
      orderOf(one) - orderOf(other) ||
      one.item - other.item,
  );
  return { total: words.total, best: best.slice(0, limit) };
}
