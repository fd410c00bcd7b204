import { Readable } from 'node:stream';

import { expect, test } from 'vitest';

import { EventPull } from './event-pull.ts';

const source = (): Readable => new Readable({ objectMode: true, read: () => undefined });
const pullOf = (stream: Readable): EventPull<number> => new EventPull(stream, async () => undefined);

test('received events are taken before the end is reported', async () => {
  const stream = source();
  const pull = pullOf(stream);
  stream.push(1);
  stream.push(2);
  stream.push(null);
  await pull.wait(1_000);
  expect(pull.take(10)).toEqual([1, 2]);
  await pull.wait(1_000);
  expect(pull.ended).toBe(true);
});

test('a stream that fails and closes in one step has not ended: `take` throws its error', async () => {
  const stream = source();
  const pull = pullOf(stream);
  stream.destroy(new Error('cut off'));
  await pull.wait(1_000);
  expect(pull.ended).toBe(false);
  expect(() => pull.take(10)).toThrow('cut off');
});

test('a wait for several events ends when they have arrived, and they are taken in order', async () => {
  const stream = source();
  const pull = pullOf(stream);
  const waited = pull.wait(10_000, 3);
  for (const event of [1, 2, 3, 4]) {
    stream.push(event);
    await new Promise(setImmediate);
  }
  expect(await waited).toBe(true);
  expect(pull.take(10)).toEqual([1, 2, 3, 4]);
  expect(pull.drained).toBe(true);
});

test('a wait for several events can end early, and the received ones can be taken', async () => {
  const stream = source();
  const pull = pullOf(stream);
  stream.push(1);
  expect(await pull.wait(20, 3)).toBe(false);
  expect(pull.drained).toBe(false);
  expect(pull.take(10)).toEqual([1]);
});

test('events that arrived before a failure are taken before it is thrown', async () => {
  const stream = source();
  const pull = pullOf(stream);
  const waited = pull.wait(10_000, 3);
  stream.push(1);
  await new Promise(setImmediate);
  stream.destroy(new Error('cut off'));
  expect(await waited).toBe(true);
  expect(pull.take(10)).toEqual([1]);
  expect(() => pull.take(10)).toThrow('cut off');
});

test('an end without a waiting call is reported by the next one', async () => {
  const stream = source();
  const pull = pullOf(stream);
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  stream.push(1);
  await turn();
  expect(pull.take(10)).toEqual([1]);
  // The stream ends while the consumer handles events.
  stream.push(null);
  await turn();
  expect(await pull.wait(1_000)).toBe(true);
  expect(pull.ended).toBe(true);
});
