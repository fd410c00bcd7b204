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
