import { describe, expect, test } from 'vitest';
import { insertInOrder, type Message, offerInOrder } from './message.ts';

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
const ids = (messages: Message[]) => messages.map(({ id }) => id);

test('messages are inserted by offset, replayed messages last in the order of their replay', () => {
  const messages: Message[] = [];
  for (const message of [read(5), replayed(0), read(2), replayed(1), read(9), read(2)]) {
    insertInOrder(messages, message);
  }
  expect(ids(messages)).toEqual(['2', '2', '5', '9', 'replayed-0', 'replayed-1']);
});

describe('offering in order', () => {
  test('stops at the first stop and keeps the messages that were not taken, in order', () => {
    const offered: string[] = [];
    const left = offerInOrder([1, 2, 3, 4].map(read), ({ id }) => {
      offered.push(id);
      return id === '1' ? 'kept' : id === '3' ? 'stop' : 'taken';
    });
    expect(offered).toEqual(['1', '2', '3']);
    expect(ids(left)).toEqual(['1', '3', '4']);
  });
});
