import { expect, it } from 'vitest';

import { sequenceOf, streamRevision } from '#libs/kernel/event.ts';

import { ChannelFrame } from './channel-frame.ts';
import { FrameRing } from './frame-ring.ts';

const sequence = (value: number) => sequenceOf(streamRevision(value - 1));
const frame = (value: number, json = '{}') => new ChannelFrame(sequence(value), 0, json);

function ringOf(first: number, last: number, json?: string): FrameRing {
  const ring = new FrameRing();
  for (let value = first; value <= last; value++) ring.push(frame(value, json));
  return ring;
}

const sequences = (ring: FrameRing, after: number, head: number, maxBytes = 1e9) =>
  ring.after(after, sequence(head), maxBytes)?.map((one) => one.sequence) ?? null;

it('gives what comes after a sequence, and nothing for the head', () => {
  const ring = ringOf(11, 20);
  expect(sequences(ring, 17, 20)).toEqual([18, 19, 20]);
  expect(sequences(ring, 10, 20)).toHaveLength(10);
  expect(sequences(ring, 20, 20)).toEqual([]);
});

it('says that it does not reach back far enough, instead of leaving something out', () => {
  expect(sequences(ringOf(11, 20), 9, 20)).toBeNull();
  expect(sequences(ringOf(1, 2_000), 0, 2_000)).toBeNull();
  expect(sequences(ringOf(1, 2_000), 1_488, 2_000)).toHaveLength(512);
  expect(sequences(ringOf(1, 2_000), 1_487, 2_000)).toBeNull();
});

it('gives large amounts in parts, each with one frame at least', () => {
  const ring = ringOf(1, 10, 'x'.repeat(1_000));
  expect(sequences(ring, 2, 10, 2_500)).toEqual([3, 4, 5]);
  expect(sequences(ring, 2, 10, 1)).toEqual([3]);
});

it('holds no more bytes than it may, but for a last frame that is larger', () => {
  const ring = ringOf(1, 10, 'x'.repeat(300_000));
  expect(sequences(ring, 7, 10)).toEqual([8, 9, 10]);
  expect(sequences(ring, 6, 10)).toBeNull();
  ring.push(frame(11, 'x'.repeat(2_000_000)));
  expect(sequences(ring, 10, 11)).toEqual([11]);
  expect(sequences(ring, 9, 11)).toBeNull();
});
