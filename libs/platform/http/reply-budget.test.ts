import { describe, expect, it } from 'vitest';

import { ReplyBudget } from './reply-budget.ts';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const MB = 1_000_000;

describe('the budget of stored replies', () => {
  it('keeps replies for the whole time while half of it is free', () => {
    const budget = new ReplyBudget(100 * MB, DAY);
    for (let n = 0; n < 49; n++) expect(budget.keepMs(MB, n)).toBe(DAY);
    expect(budget.bytes).toBe(49 * MB);
  });

  it('keeps them for less time the fuller it is, and none once it is full', () => {
    const budget = new ReplyBudget(100 * MB, DAY);
    const times = Array.from({ length: 120 }, () => budget.keepMs(MB, 0));
    expect(times).toEqual(times.toSorted((one, other) => other - one));
    expect(times[75]).toBeLessThan(DAY / 3);
    expect(times.slice(0, 99).every((time) => time >= MINUTE)).toBe(true);
    expect(times.slice(99)).toEqual(times.slice(99).map(() => 0));
    expect(budget.bytes).toBe(99 * MB);
  });

  it('has room again when they expire', () => {
    const budget = new ReplyBudget(10 * MB, DAY);
    for (let n = 0; n < 20; n++) budget.keepMs(MB, 0);
    expect(budget.keepMs(MB, 5 * MINUTE)).toBe(0);
    expect(budget.keepMs(MB, 120 * MINUTE)).toBeGreaterThan(MINUTE);
    expect(budget.keepMs(MB, DAY + 2 * MINUTE)).toBe(DAY);
    expect(budget.bytes).toBe(MB);
  });

  it('settles below its limit at any steady rate', () => {
    for (const perMinute of [0.2, 1, 8]) {
      const budget = new ReplyBudget(100 * MB, DAY);
      for (let minute = 0; minute < 4 * 24 * 60; minute++) budget.keepMs(perMinute * MB, minute * MINUTE);
      expect(budget.bytes).toBeLessThan(100 * MB);
      expect(budget.bytes).toBeGreaterThan(60 * MB);
    }
  });
});
