import { afterEach, describe, expect, it } from 'vitest';
import { type RequestQueue, scheduleCheckPendingRequests } from './timer.ts';

const timers: NodeJS.Timeout[] = [];
afterEach(() => timers.splice(0).forEach(clearTimeout));

function scheduled(of: Partial<RequestQueue>): NodeJS.Timeout | null {
  const queue = { pending: [], throttledUntil: -1, throttleCheckTimeoutId: null, checkPendingRequests() {}, ...of };
  scheduleCheckPendingRequests.call(queue);
  if (queue.throttleCheckTimeoutId !== null) timers.push(queue.throttleCheckTimeoutId);
  return queue.throttleCheckTimeoutId;
}

describe('timers of kafkajs', () => {
  it('are not set while no request waits', () => {
    expect(scheduled({})).toBeNull();
    expect(scheduled({ throttledUntil: Date.now() - 1 })).toBeNull();
  });

  it('are set while requests wait, and while the broker throttles this client', () => {
    expect(scheduled({ pending: [{}] })).not.toBeNull();
    expect(scheduled({ throttledUntil: Date.now() + 60_000 })).not.toBeNull();
  });

  it('are set once', () => {
    const before = setTimeout(() => undefined, 0);
    timers.push(before);
    expect(scheduled({ pending: [{}], throttleCheckTimeoutId: before })).toBe(before);
  });

  it('check the waiting requests again', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    scheduled({ pending: [{}], checkPendingRequests: resolve });
    await expect(promise).resolves.toBeUndefined();
  });
});
