import { describe, expect, it } from 'vitest';

import { EventQueue } from './event-queue.ts';
import type { ChannelEvent } from './events.ts';

const event = (seq: number): ChannelEvent => ({ seq, type: 'unknown', at: '2026-01-01T00:00:00.000Z', data: null });

describe('EventQueue', () => {
  it('returns events in order', () => {
    const queue = new EventQueue();
    const taken: (number | undefined)[] = [];
    for (let seq = 1; seq <= 100; seq++) {
      queue.push(event(seq), 1);
      if (seq % 3 === 0) taken.push(queue.shift()?.seq, queue.shift()?.seq);
    }
    while (queue.length > 0) taken.push(queue.shift()?.seq);
    expect(taken).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
    expect(queue.shift()).toBeUndefined();
  });

  it.each([
    ['events', { events: 4, characters: 1_000 }, 1],
    ['characters', { events: 1_000, characters: 40 }, 10],
  ])('is full by its %s, and has room again at half of it', (_what, limits, size) => {
    const queue = new EventQueue(limits);
    for (let seq = 1; seq <= 3; seq++) queue.push(event(seq), size);
    expect(queue.full).toBe(false);
    queue.push(event(4), size);
    expect([queue.full, queue.hasRoom]).toEqual([true, false]);
    queue.shift();
    expect([queue.full, queue.hasRoom]).toEqual([false, false]);
    queue.shift();
    expect(queue.hasRoom).toBe(true);
  });
});
