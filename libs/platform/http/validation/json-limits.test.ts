import { expect, test } from 'vitest';
import { jsonLimitProblem } from './json-limits.ts';
import { parseJson } from './json-numbers.ts';

const limits = { depth: 3, nodes: 5, bytes: 40 };
const problem = (value: object) => jsonLimitProblem(value, limits)?.msg;

test('values at the limits pass', () => {
  expect(problem({})).toBeUndefined();
  expect(problem({ a: { b: { c: 1 } } })).toBeUndefined();
  expect(problem({ a: [1, 2, 3, 4] })).toBeUndefined();
  expect(problem({ a: 'x'.repeat(32) })).toBeUndefined();
});

test('one level, one value or one byte more does not', () => {
  expect(problem({ a: { b: { c: {} } } })).toContain('3 levels');
  expect(problem({ a: [[[]]] })).toContain('3 levels');
  expect(problem({ a: [1, 2, 3, 4, 5] })).toContain('5 values');
  expect(problem({ a: 'x'.repeat(33) })).toContain('40 bytes');
  expect(problem({ a: 'é'.repeat(17) })).toContain('40 bytes');
});

test('what would come back from storage as something else is refused', () => {
  expect(problem({ a: parseJson('1e999') })).toContain('finite');
  expect(problem({ a: [parseJson('9007199254740993')] })).toContain('represented exactly');
  expect(problem({ a: '\ud800' })).toContain('unicode');
  expect(problem({ '\udfff': 1 })).toContain('unicode');
});

test('a value far beyond the limits costs no more than one at them', () => {
  let deep: object = {};
  for (let level = 0; level < 100_000; level += 1) deep = { deep };
  expect(problem(deep)).toContain('3 levels');
  expect(problem({ wide: Array.from({ length: 1_000_000 }, () => 1) })).toContain('5 values');
});
