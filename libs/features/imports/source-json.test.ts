import { expect, it } from 'vitest';

import { parseSourceJson } from './source-json.ts';

it('parses JSON, whatever its texts contain', () => {
  const value = { text: `${'['.repeat(200)}",\\"{`, list: [1, [2, { three: null }]] };
  expect(parseSourceJson(JSON.stringify(value))).toEqual(value);
});

it.each([
  ['malformed JSON', '{', 'not JSON'],
  ['nesting beyond 100 levels', '['.repeat(101), 'nested deeper than 100 levels'],
  ['mixed nesting beyond 100 levels', '[{"a":'.repeat(51), 'nested deeper than 100 levels'],
  ['too many values', `[${'0,'.repeat(8_000_000)}0]`, 'more than 8 million values'],
  ['too many empty lists', `[${'[],'.repeat(4_000_000)}0]`, 'more than 8 million values'],
])('refuses %s', (_, text, reason) => {
  expect(() => parseSourceJson(text)).toThrow(reason);
});

it('parses 100 levels', () => {
  expect(parseSourceJson('['.repeat(100) + ']'.repeat(100))).toHaveLength(1);
});
