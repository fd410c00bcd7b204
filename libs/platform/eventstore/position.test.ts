import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { comparePositions, decodePosition, encodePosition } from './position.ts';

const offset = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const position = fc.record({ commit: offset, prepare: offset });

test('a position equals its decoded text', () => {
  fc.assert(
    fc.property(position, (p) => {
      expect(decodePosition(encodePosition(p))).toEqual(p);
    }),
  );
});

test('a text that is not a position is refused', () => {
  for (const text of [
    '',
    '1',
    '1/',
    '/1',
    '-1/1',
    '01/1',
    '1/1/1',
    ' 1/1',
    '1.0/1',
    `${2n ** 64n}/0`,
    `0/${2n ** 64n}`,
  ]) {
    expect(() => decodePosition(text)).toThrow(RangeError);
  }
});

test('positions are ordered by commit, then by prepare offset', () => {
  const at = (commit: bigint, prepare: bigint) => ({ commit, prepare });
  const sorted = [at(2n, 1n), at(1n, 9n), at(10n, 0n), at(2n, 0n)].sort(comparePositions);
  expect(sorted.map(encodePosition)).toEqual(['1/9', '2/0', '2/1', '10/0']);
  expect(comparePositions(at(3n, 3n), at(3n, 3n))).toBe(0);
});
