import { expect, it } from 'vitest';
import { recentlyUsed } from './index.ts';

it('discards the least recently used entry beyond its size', () => {
  const cache = recentlyUsed<string, number>(2);
  cache.set('a', 1).set('b', 2);
  cache.get('a');
  cache.set('c', 3);
  expect(cache.size).toBe(2);
  // `LRUCache` allocates that many entries at once.
  expect(cache.max).toBe(0);
  expect([cache.get('a'), cache.get('b'), cache.get('c')]).toEqual([1, undefined, 3]);
});
