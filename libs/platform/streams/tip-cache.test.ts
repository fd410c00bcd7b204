import { describe, expect, it } from 'vitest';

import { streamRevision } from '#libs/kernel/event.ts';

import { TipCache } from './tip-cache.ts';

const entity = (characters: number, otherBytes?: number) => ({
  tip: { state: { text: 'x'.repeat(characters) }, revision: streamRevision(0), at: null },
  otherBytes,
});

describe('the cache of tips', () => {
  it('drops the least recently used ones beyond its limit in bytes', () => {
    const cache = new TipCache(100_000);
    for (const name of ['a', 'b', 'c', 'd']) cache.put(name, entity(10_000), null);
    const used = cache.take('a');
    expect(used?.tip.state).toEqual({ text: 'x'.repeat(10_000) });
    cache.put('a', entity(10_000), null);
    cache.put('e', entity(10_000), null);
    expect(cache.evicted).toBe(1);
    expect(cache.take('b')).toBeUndefined();
    expect(['a', 'c', 'd', 'e'].filter((name) => cache.take(name) !== undefined)).toEqual(['a', 'c', 'd', 'e']);
    expect([cache.size, cache.bytes, cache.evicted]).toEqual([0, 0, 1]);
  });

  it('counts small entities, too, and does not keep one that is larger than the limit', () => {
    const cache = new TipCache(100_000);
    for (let n = 0; n < 1_000; n++) cache.put(`${n}`, entity(10), null);
    expect(cache.size).toBeLessThan(100);
    cache.put('large', entity(60_000), null);
    expect(cache.take('large')).toBeUndefined();
  });

  it('counts what is noted beside a tip', () => {
    const [without, withThem] = [new TipCache(), new TipCache()];
    without.put('a', entity(10), null);
    withThem.put('a', entity(10, 10_000), null);
    expect(withThem.bytes - without.bytes).toBe(10_000);
  });

  it('counts what an entity grows by, and measures it again once that is as much as it was', () => {
    const cache = new TipCache();
    const grow = (characters: number, bytes: number): number => {
      const from = cache.take('a');
      cache.put('a', entity(characters), from === undefined ? null : { from, bytes });
      return cache.bytes;
    };
    const first = grow(10_000, 0);
    expect(grow(10_500, 1_000)).toBe(first + 1_000);
    expect(grow(10_500, 1_000)).toBe(first + 2_000);
    // The events did not make it larger, or made it smaller.
    expect(grow(10_500, 30_000)).toBe(first + 1_000);
    expect(grow(10, 30_000)).toBeLessThan(2_000);
    expect(grow(10, 4_000)).toBeLessThan(6_000);
    expect(grow(10, 4_000)).toBeLessThan(2_000);
  });
});
