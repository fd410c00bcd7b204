import { describe, expect, it } from 'vitest';

import { KeptReads } from './kept-reads.ts';

describe('the results of repeated reads', () => {
  it('are kept within a limit in bytes, the least recently used dropped first', () => {
    const kept = new KeptReads(100_000);
    for (const name of ['a', 'b', 'c', 'd']) kept.keep(name, '1', [name, 20_000]);
    expect(kept.begin('a')).toMatchObject({ revision: '1', result: 'a' });
    kept.keep('e', '1', ['e', 20_000]);
    expect([kept.evicted, kept.size]).toEqual([1, 4]);
    expect(kept.bytes).toBeLessThanOrEqual(100_000);
    expect(['a', 'c', 'd', 'e'].map((name) => kept.begin(name)?.result)).toEqual(['a', 'c', 'd', 'e']);
    expect(kept.begin('b')).toBeUndefined();
  });

  it('count those that were run once, which have no result', () => {
    const kept = new KeptReads(100_000);
    expect(kept.begin('a')).toBeUndefined();
    expect(kept.begin('a')).toMatchObject({ revision: null });
    for (let n = 0; n < 1_000; n++) kept.begin(`${n}`);
    expect(kept.size).toBeLessThan(100);
    expect(kept.begin('a')).toBeUndefined();
  });

  it('do not include one that is larger than the limit', () => {
    const kept = new KeptReads(100_000);
    kept.keep('large', '1', ['large', 100_000]);
    expect(kept.begin('large')).toBeUndefined();
  });
});
