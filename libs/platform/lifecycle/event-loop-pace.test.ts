import { expect, it } from 'vitest';

import { EventLoopPace } from './event-loop-pace.ts';

const work = (ms: number): void => {
  for (const until = performance.now() + ms; performance.now() < until;);
};

it('lets callers in one after the other, each after as much idle time as there was work since the one before', async () => {
  const pace = new EventLoopPace();
  await pace.wait();
  const order: number[] = [];
  const callers = [0, 1, 2].map(async (caller) => {
    const [startedAt, since] = [performance.now(), performance.eventLoopUtilization()];
    work(10);
    await pace.wait();
    order.push(caller);
    const { active, idle } = performance.eventLoopUtilization(since);
    // Or after the longest wait, its own or that of a caller before it.
    expect(idle >= active * 0.9 || performance.now() - startedAt >= 50).toBe(true);
  });
  await Promise.all(callers);
  expect(order).toEqual([0, 1, 2]);
});
