import { Readable } from 'node:stream';

import { expect, test } from 'vitest';

import { EventPull } from './event-pull.ts';

class Call extends Readable {
  isCancelled = false;

  constructor() {
    super({ objectMode: true, read: () => undefined });
  }

  cancel(): void {
    this.isCancelled = true;
  }
}

const source = (): Call => new Call();
const pullOf = (call: Call, readAhead = 10): EventPull<number> => new EventPull(Promise.resolve(call), readAhead);
const turn = () => new Promise((resolve) => setImmediate(resolve));

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
    await turn();
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
  await turn();
  stream.destroy(new Error('cut off'));
  expect(await waited).toBe(true);
  expect(pull.take(10)).toEqual([1]);
  expect(() => pull.take(10)).toThrow('cut off');
});

test('an end without a waiting call is reported by the next one', async () => {
  const stream = source();
  const pull = pullOf(stream);
  stream.push(1);
  await turn();
  expect(pull.take(10)).toEqual([1]);
  // The stream ends while the consumer handles events.
  stream.push(null);
  await turn();
  expect(await pull.wait(1_000)).toBe(true);
  expect(pull.ended).toBe(true);
});

test('a call waits while as many items as allowed were not taken', async () => {
  const call = source();
  const pull = pullOf(call, 2);
  for (const event of [1, 2, 3, 4, 5]) call.push(event);
  await turn();
  expect(call.isPaused()).toBe(true);
  expect(pull.take(10)).toEqual([1, 2]);
  await pull.wait(1_000);
  expect(pull.take(1)).toEqual([3]);
  await pull.wait(1_000, 2);
  expect(pull.take(10)).toEqual([4, 5]);
});

test('a call that is made after the close is cancelled, and one that fails then is no fault', async () => {
  const call = source();
  pullOf(call).close();
  new EventPull(Promise.reject(new Error('not connected')), 10).close();
  await turn();
  await turn();
  expect(call.isCancelled).toBe(true);
});

test('a call that fails to be made fails the pull', async () => {
  const pull = new EventPull(Promise.reject(new Error('not connected')), 10);
  expect(await pull.wait(1_000)).toBe(true);
  expect(pull.ended).toBe(false);
  expect(() => pull.take(10)).toThrow('not connected');
});

test('a complete call is received to its end, and not cancelled', async () => {
  const call = source();
  const pull = pullOf(call, 1);
  call.push(1);
  await pull.wait(1_000);
  pull.close(true);
  call.push(null);
  await turn();
  expect([call.readableEnded, call.isCancelled]).toEqual([true, false]);
});
