import { describe, expect, it } from 'vitest';

import { KeptReads } from './kept-reads.ts';

describe('the results of repeated reads', () => {
  it('are kept within a limit in bytes, the least recently used dropped first', () => {
    const kept = new KeptReads(100_000);
    for (const name of ['a', 'b', 'c', 'd']) kept.put(name, '1', [name, 20_000]);
    expect(kept.find('a')).toMatchObject({ revision: '1', result: 'a' });
    kept.put('e', '1', ['e', 20_000]);
    expect([kept.evicted, kept.size]).toEqual([1, 4]);
    expect(kept.bytes).toBeLessThanOrEqual(100_000);
    expect(['a', 'c', 'd', 'e'].map((name) => kept.find(name)?.result)).toEqual(['a', 'c', 'd', 'e']);
    expect(kept.find('b')).toBeUndefined();
  });

  it('count those that were run once, which have no result', () => {
    const kept = new KeptReads(100_000);
    expect(kept.find('a')).toBeUndefined();
    expect(kept.find('a')).toMatchObject({ revision: null });
    for (let n = 0; n < 1_000; n++) kept.find(`${n}`);
    expect(kept.size).toBeLessThan(100);
    expect(kept.find('a')).toBeUndefined();
  });

  it('do not include one that is larger than the limit', () => {
    const kept = new KeptReads(100_000);
    kept.put('large', '1', ['large', 100_000]);
    expect(kept.find('large')).toBeUndefined();
  });
});
