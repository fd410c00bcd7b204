import { describe, expect, test } from 'vitest';
import { offerInOrder, RetryQueue } from './message.ts';
import type { Message } from './message.ts';

const read = (offset: number): Message => ({
  kind: 'read',
  id: `${offset}`,
  event: undefined,
  link: undefined,
  retryCount: 1,
  offset,
});
const replayed = (parkedRevision: number): Message => ({
  kind: 'replayed',
  id: `replayed-${parkedRevision}`,
  event: undefined,
  link: undefined,
  retryCount: 0,
  parkedRevision,
});
const ids = (messages: Iterable<Message>) => [...messages].map(({ id }) => id);

describe('the retry queue', () => {
  test('hands out the oldest first, and replayed messages last, in the order of their replay', () => {
    const queue = new RetryQueue();
    for (const message of [read(5), replayed(0), read(2), replayed(1), read(9), read(2)]) queue.add(message);
    expect(ids({ [Symbol.iterator]: () => queue[Symbol.iterator]() })).toEqual([
      '2',
      '2',
      '5',
      '9',
      'replayed-0',
      'replayed-1',
    ]);
  });

  test('keeps what was not taken', () => {
    const queue = new RetryQueue();
    for (const offset of [1, 2, 3, 4]) queue.add(read(offset));
    queue.offerAll(({ id }) => (id === '2' ? 'kept' : 'taken'));
    expect(queue.length).toBe(1);
  });
});

describe('offering in order', () => {
  test('ends at the first stop and keeps the rest in order', () => {
    const offered: string[] = [];
    const left = offerInOrder([1, 2, 3, 4].map(read), ({ id }) => {
      offered.push(id);
      return id === '1' ? 'kept' : id === '3' ? 'stop' : 'taken';
    });
    expect(offered).toEqual(['1', '2', '3']);
    expect(ids(left)).toEqual(['1', '3', '4']);
  });
});
