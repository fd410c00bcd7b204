import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { IndexQueries } from './index-queries.ts';
import { UnusableIndex } from './thread-client.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const queries = (onRebuilt?: () => void) =>
  new IndexQueries({ permits: 1, ...(onRebuilt !== undefined && { onRebuilt }) });

describe('a query of an index', () => {
  it('that waits too long for the index fails, and ends the wait of the catch-up', async () => {
    const signals: AbortSignal[] = [];
    const catchUp = (signal: AbortSignal): Promise<void> => {
      signals.push(signal);
      return new Promise(() => undefined);
    };
    const asked = queries().run('group', catchUp, () => Promise.resolve(1));
    const failure = asked.catch((error: unknown) => error);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
    await vi.advanceTimersByTimeAsync(4_000);
    expect(await failure).toMatchObject({ code: 'not_caught_up' });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  });

  it('has an unusable index built again, three times at most', async () => {
    let [rebuilt, catchUps] = [0, 0];
    const unusable = queries(() => (rebuilt += 1)).run(
      'group',
      async () => void (catchUps += 1),
      () => Promise.reject(new UnusableIndex('damaged')),
    );
    await expect(unusable).rejects.toMatchObject({ code: 'store_unavailable' });
    expect([rebuilt, catchUps]).toEqual([3, 3]);
  });
});
