import { expect, it } from 'vitest';

import type { ChannelSequence } from '#libs/kernel/event.ts';

import { ChannelFrame } from './channel-frame.ts';
import { PendingFrames } from './pending-frames.ts';

const frame = (sequence: number, bytes = 10): ChannelFrame =>
  new ChannelFrame(sequence as ChannelSequence, 0, 'x'.repeat(bytes));

it('gives each frame once, and none that has come by another way', () => {
  const pending = new PendingFrames();
  for (const sequence of [5, 3, 9]) pending.put(sequence, frame(sequence));
  expect(pending.take(3)?.sequence).toBe(3);
  expect(pending.take(3)).toBeUndefined();
  pending.forgetUpTo(5);
  expect(pending.take(5)).toBeUndefined();
  expect(pending.take(9)?.sequence).toBe(9);
});

it('holds so many, and so many bytes, whatever came and went before', () => {
  const many = new PendingFrames();
  for (let sequence = 1; sequence <= 2_049; sequence++) many.put(sequence, frame(sequence));
  expect([many.take(1), many.take(2_048)]).toEqual([undefined, undefined]);
  expect(many.take(2_049)?.sequence).toBe(2_049);

  const large = new PendingFrames();
  for (let round = 0; round < 20; round++) {
    large.put(1, frame(1, 1_000_000));
    large.put(1, frame(1, 1_000_000));
    large.put(2, frame(2, 1_000_000));
    large.take(1);
    large.forgetUpTo(2);
  }
  for (let sequence = 1; sequence <= 4; sequence++) large.put(sequence, frame(sequence, 1_000_000));
  expect(large.take(1)?.sequence).toBe(1);
  large.put(5, frame(5, 1_000_000));
  expect(large.take(2)?.sequence).toBe(2);
  large.put(6, frame(6, 2_000_000));
  expect([3, 4, 5].map((sequence) => large.take(sequence))).toEqual([undefined, undefined, undefined]);
  expect(large.take(6)?.sequence).toBe(6);
});
