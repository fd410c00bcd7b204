import { describe, expect, it, vi } from 'vitest';

import { parseSourceJson, sourceTime, textItems } from './import.model.ts';

describe('all formats', () => {
  it('split long text between characters', () => {
    const items = textItems(`${'x'.repeat(131_071)}🙂y`);
    expect(items.map(({ text }) => text.length)).toEqual([131_071, 3]);
    expect(items.every(({ text }) => text.isWellFormed())).toBe(true);
  });

  it.each([
    ['1772445600.000100', '2026-03-02T10:00:00.000Z'],
    [1_772_445_600_000, '2026-03-02T10:00:00.000Z'],
    ['2026-03-02T11:00:00+01:00', '2026-03-02T10:00:00.000Z'],
    ['2026-03-02 11:00:00.123456+0100', '2026-03-02T10:00:00.123Z'],
    ['Mon, 02 Mar 2026 11:00:00 +0100', '2026-03-02T10:00:00.000Z'],
    ['Mon Mar 02 2026', null],
    ['part 5', null],
    ['2026-03-32T10:00:00Z', null],
    ['yesterday', null],
    [Number.MAX_VALUE, null],
    [null, null],
  ])('read %s as %s', (value, time) => {
    expect(sourceTime(value)).toBe(time);
  });

  it.each(['Pacific/Auckland', 'America/Los_Angeles'])('read times without a zone as UTC, also in %s', (zone) => {
    vi.stubEnv('TZ', zone);
    expect(new Date(Date.UTC(2026, 2, 2, 10)).getHours()).not.toBe(10);
    for (const text of ['2026-03-02T10:00:00', '2026-03-02 10:00:00', '2026-03-02T10:00']) {
      expect(sourceTime(text)).toBe('2026-03-02T10:00:00.000Z');
    }
    expect(sourceTime('2026-03-02')).toBe('2026-03-02T00:00:00.000Z');
    vi.unstubAllEnvs();
  });
});

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
