import { describe, expect, it } from 'vitest';

import { median, percentile } from './statistics.ts';

describe('statistics of the benchmarks', () => {
  it('takes the middle of an odd number of values, in any order', () => {
    expect(median([9, 1, 5])).toBe(5);
  });

  it('takes the mean of the two middle ones of an even number', () => {
    expect(median([4, 1, 2, 100])).toBe(3);
  });

  it('finds a percentile between its neighbours', () => {
    const values = Array.from({ length: 101 }, (_, index) => index);
    expect(percentile(values, 0.99)).toBe(99);
    expect(percentile([0, 10], 0.25)).toBe(2.5);
  });

  it('returns NaN for no values', () => {
    expect(median([])).toBeNaN();
  });
});
