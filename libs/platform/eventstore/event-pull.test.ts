import { Readable } from 'node:stream';

import { expect, test } from 'vitest';

import { EventPull } from './event-pull.ts';

const source = (): Readable => new Readable({ objectMode: true, read: () => undefined });
const pullOf = (stream: Readable): EventPull<number> => new EventPull(stream, async () => undefined);

test('what has arrived is taken, and then the end is seen', async () => {
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

test('a stream that fails and closes in one step has not ended: its error is still to be taken', async () => {
  const stream = source();
  const pull = pullOf(stream);
  stream.destroy(new Error('cut off'));
  await pull.wait(1_000);
  expect(pull.ended).toBe(false);
  expect(() => pull.take(10)).toThrow('cut off');
});

test('a wait for several ends when so many are there, and they are taken in order', async () => {
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

test('a wait for several ends early, and what has arrived can be taken', async () => {
  const stream = source();
  const pull = pullOf(stream);
  stream.push(1);
  expect(await pull.wait(20, 3)).toBe(false);
  expect(pull.drained).toBe(false);
  expect(pull.take(10)).toEqual([1]);
});

test('what arrived before a failure is taken before the failure is thrown', async () => {
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

test('an end that came while nobody waited is seen by the next who does', async () => {
  const stream = source();
  const pull = pullOf(stream);
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  stream.push(1);
  await turn();
  expect(pull.take(10)).toEqual([1]);
  // The consumer is busy with what it took, and the stream ends meanwhile.
  stream.push(null);
  await turn();
  expect(await pull.wait(1_000)).toBe(true);
  expect(pull.ended).toBe(true);
});
