import { expect, it } from 'vitest';

import { allowedTypos, typosBetween } from './query-terms.ts';

it.each([
  ['vacuum', 'vacuum', 0],
  ['vacum', 'vacuum', 1],
  ['vaccuum', 'vacuum', 1],
  ['vcauum', 'vacuum', 1],
  ['vekuum', 'vacuum', 2],
  ['transacton', 'transaction', 1],
  ['', 'ab', 2],
])('%j is %j with %i typos', (one, other, typos) => {
  expect(typosBetween(one, other, 2)).toBe(typos);
  expect(typosBetween(other, one, 2)).toBe(typos);
});

it('is more than the limit for words that differ by more', () => {
  expect(typosBetween('vacuum', 'index', 2)).toBeGreaterThan(2);
  expect(typosBetween('ab', 'abcdef', 2)).toBeGreaterThan(2);
});

it('allows more typos in longer words', () => {
  expect(['abc', 'abcd', 'abcdefg', 'abcdefgh'].map(allowedTypos)).toEqual([0, 1, 1, 2]);
});
