import { expect, it } from 'vitest';

import { fused } from './top-items.ts';

const columns = { order: Float64Array.from([5, 4, 3, 2, 1]) };
const ranking = (total: number, ...items: number[]) => ({
  total,
  best: items.map((item, place) => ({ item, score: 100 - place, row: item * 10 })),
});

const itemsOf = (...of: Parameters<typeof fused>) => fused(...of).best.map(({ item }) => item);

it('what both rankings have comes before what one of them has first', () => {
  expect(itemsOf(ranking(9, 0, 1), ranking(9, 2, 1), { limit: 10, columns })).toEqual([1, 2, 0]);
});

it('equal places are ordered by the ids', () => {
  expect(itemsOf(ranking(9, 0, 1), ranking(9, 3, 4), { limit: 3, columns })).toEqual([3, 0, 4]);
});

it('the total is that of the words', () => {
  expect(fused(ranking(7, 0), ranking(50, 0), { limit: 1, columns }).total).toBe(7);
});
