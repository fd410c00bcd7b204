import { expect, it } from 'vitest';

import { RecentCallers } from './rate-limits.ts';

it('knows whether another organization has sent a request within the last second', () => {
  const callers = new RecentCallers();
  expect(callers.hasOthersThan('a', 0)).toBe(false);
  callers.note('a', 0);
  callers.note('a', 100);
  expect(callers.hasOthersThan('a', 100)).toBe(false);
  expect(callers.hasOthersThan('b', 1_099)).toBe(true);
  expect(callers.hasOthersThan('b', 1_100)).toBe(false);
  callers.note('b', 2_000);
  callers.note('a', 2_100);
  callers.note('a', 2_900);
  expect(callers.hasOthersThan('a', 2_999)).toBe(true);
  expect(callers.hasOthersThan('a', 3_000)).toBe(false);
  expect(callers.hasOthersThan('b', 3_000)).toBe(true);
});
