import { Writable } from 'node:stream';

import { expect, it } from 'vitest';

import { drained } from './drained.ts';

/** Takes what it is written once it is told to. */
function heldBack(): { stream: Writable; take(): void } {
  const held: (() => void)[] = [];
  const stream = new Writable({ highWaterMark: 100, write: (_chunk, _encoding, done) => void held.push(done) });
  return { stream, take: () => held.shift()?.() };
}

it('resolves once all was taken, whether a write has said "enough" or not', async () => {
  for (const size of [10, 1_000]) {
    const { stream, take } = heldBack();
    stream.write('x'.repeat(size));
    const waiting = drained(stream);
    take();
    // The empty write that came behind.
    setImmediate(take);
    await waiting;
    expect(stream.writableLength).toBe(0);
  }
});

it('writes nothing to a stream that was ended, and resolves when it closes', async () => {
  const { stream, take } = heldBack();
  const errors: unknown[] = [];
  stream.on('error', (error) => errors.push(error));
  stream.end('the last words');
  const waiting = drained(stream);
  take();
  await waiting;
  expect(errors).toEqual([]);
  expect(stream.closed).toBe(true);
});
