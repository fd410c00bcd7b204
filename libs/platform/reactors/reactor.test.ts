import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import { gathered } from './reactor.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

it('events that come close together begin at the same moments, and an event alone at once', () => {
  const waitMs = gathered(20);
  const beginAt = [0, 5, 19, 20, 21, 39, 45, 300, 301].map((atMs) => {
    vi.advanceTimersByTime(atMs - performance.now());
    return performance.now() + waitMs();
  });
  expect(beginAt).toEqual([0, 20, 20, 20, 40, 40, 45, 300, 320]);
});
