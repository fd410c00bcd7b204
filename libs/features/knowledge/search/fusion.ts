import type { Columns } from './columns.ts';
import type { Ranked, Ranking } from './top-items.ts';

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
