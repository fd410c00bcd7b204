import { describe, expect, it } from 'vitest';

import type { ChannelSequence } from '#libs/kernel/event.ts';

import { FRAME_FLAG } from './frames.ts';
import { LiveFrame } from './live-frame.ts';
import { EventBuffer } from './event-buffer.ts';
import { FrameMemory } from './frame-memory.ts';

const frame = (sequence: number, json = '{}') => new LiveFrame(sequence as ChannelSequence, 0, json);

/** A buffer, and the sequences that it has put in order. */
function started(head = 0, memory = new FrameMemory()): { buffer: EventBuffer; order: number[] } {
  const order: number[] = [];
  const buffer = new EventBuffer(memory, ({ sequence }) => void order.push(sequence ?? 0));
  buffer.start(head);
  return { buffer, order };
}

function filled(first: number, last: number, json?: string): EventBuffer {
  const { buffer } = started(first - 1);
  for (let value = first; value <= last; value++) buffer.put(frame(value, json));
  return buffer;
}

const sequences = (buffer: EventBuffer, after: number, maxBytes = 1e9) =>
  buffer.after(after, maxBytes)?.map((one) => one.sequence) ?? null;

describe('the recent events', () => {
  it('are those after a sequence, and none for the head', () => {
    const buffer = filled(11, 20);
    expect(sequences(buffer, 17)).toEqual([18, 19, 20]);
    expect(sequences(buffer, 10)).toHaveLength(10);
    expect(sequences(buffer, 20)).toEqual([]);
  });

  it('are null, instead of incomplete, if they do not reach back far enough', () => {
    expect(sequences(filled(11, 20), 9)).toBeNull();
    const long = filled(1, 2_000);
    expect(sequences(long, 0)).toBeNull();
    expect(sequences(long, 1_488)).toHaveLength(512);
    expect(sequences(long, 1_487)).toBeNull();
  });

  it('come in parts if they are large, each with one frame at least', () => {
    const buffer = filled(1, 10, 'x'.repeat(1_000));
    expect(sequences(buffer, 2, 2_500)).toEqual([3, 4, 5]);
    expect(sequences(buffer, 2, 1)).toEqual([3]);
  });

  it('have a limited size, except for a last frame that is larger', () => {
    const buffer = filled(1, 10, 'x'.repeat(300_000));
    expect(sequences(buffer, 7)).toEqual([8, 9, 10]);
    expect(sequences(buffer, 6)).toBeNull();
    buffer.put(frame(11, 'x'.repeat(2_000_000)));
    expect(sequences(buffer, 10)).toEqual([11]);
    expect(sequences(buffer, 9)).toBeNull();
  });
});

describe('an event that erases data', () => {
  it('drops the recent frames before it, and those that were read from the log before it came', () => {
    const buffer = filled(11, 20);
    buffer.put(new LiveFrame(21 as ChannelSequence, FRAME_FLAG.erases, '{}'));
    buffer.put(frame(22));
    expect(sequences(buffer, 20)).toEqual([21, 22]);
    expect(sequences(buffer, 19)).toBeNull();
    buffer.extendBack([frame(19), frame(20)]);
    expect(sequences(buffer, 19)).toBeNull();
  });
});

describe('earlier events', () => {
  const frames = (first: number, last: number, json?: string) =>
    Array.from({ length: last - first + 1 }, (_, n) => frame(first + n, json));

  it('extend the recent ones if they precede them directly', () => {
    const buffer = filled(11, 20);
    buffer.extendBack(frames(3, 9));
    expect(sequences(buffer, 9)).toBeNull();
    buffer.extendBack(frames(5, 14));
    expect(sequences(buffer, 4)).toEqual([5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]);
    buffer.put(frame(21));
    expect(sequences(buffer, 4)).toHaveLength(17);
  });

  it('displace no later ones, neither of their channel nor where no memory is left', () => {
    const buffer = filled(1_000, 1_500);
    buffer.extendBack(frames(1, 999));
    expect(sequences(buffer, 988)).toHaveLength(512);
    expect(sequences(buffer, 987)).toBeNull();
    const large = filled(11, 12, 'x'.repeat(300_000));
    large.extendBack(frames(1, 10, 'x'.repeat(300_000)));
    expect(sequences(large, 9)).toHaveLength(3);
    expect(sequences(large, 8)).toBeNull();
  });

  it('leave the recent ones contiguous if the memory of the process is used up', () => {
    const memory = new FrameMemory(40_000);
    const { buffer } = started(20, memory);
    for (const one of frames(21, 30)) buffer.put(one);
    buffer.extendBack(frames(1, 20, 'x'.repeat(3_000)));
    const kept = [...Array(30).keys()].filter((after) => buffer.after(after, 1e9) !== null);
    expect(kept).toEqual(Array.from({ length: kept.length }, (_, n) => 30 - kept.length + n));
    expect(memory.bytes).toBeLessThanOrEqual(40_000);
    buffer.clear();
    expect(memory.bytes).toBe(0);
  });
});

describe('events', () => {
  it('are put in order, once each, and a gap shows until it is filled', () => {
    const { buffer, order } = started(2);
    for (const sequence of [2, 5, 3, 3, 7, 5]) buffer.put(frame(sequence));
    expect(order).toEqual([3]);
    expect(buffer.hasGap).toBe(true);
    for (const sequence of [4, 6]) buffer.put(frame(sequence));
    expect(order).toEqual([3, 4, 5, 6, 7]);
    expect([buffer.head, buffer.hasGap]).toEqual([7, false]);
    buffer.announce(8);
    expect(buffer.hasGap).toBe(true);
  });

  it('wait for the head before the start', () => {
    const order: number[] = [];
    const buffer = new EventBuffer(new FrameMemory(), ({ sequence }) => void order.push(sequence ?? 0));
    for (const sequence of [6, 4, 5]) buffer.put(frame(sequence));
    expect([order, buffer.hasGap]).toEqual([[], false]);
    buffer.start(4);
    expect(order).toEqual([5, 6]);
  });

  it('that wait for a missing one are limited in number, and all dropped beyond the limit', () => {
    const { buffer, order } = started();
    for (let sequence = 2; sequence <= 2_050; sequence++) buffer.put(frame(sequence));
    buffer.put(frame(1));
    expect(order).toEqual([1]);
    for (let sequence = 2; sequence <= 2_049; sequence++) buffer.put(frame(sequence));
    expect(order.at(-1)).toBe(2_050);
  });

  it('that wait for a missing one are limited in size, whatever came and went before', () => {
    const { buffer, order } = started();
    const large = 'x'.repeat(1_000_000);
    for (let head = 0; head < 60; head += 3) {
      for (const ahead of [3, 3, 2, 1]) buffer.put(frame(head + ahead, large));
    }
    expect(buffer.head).toBe(60);
    for (const sequence of [62, 63, 64, 65]) buffer.put(frame(sequence, large));
    // Beyond the limit: drops the four, and waits itself.
    buffer.put(frame(66, large));
    for (const sequence of [61, 62]) buffer.put(frame(sequence, '{}'));
    expect(order.slice(60)).toEqual([61, 62]);
    for (const sequence of [63, 64, 65]) buffer.put(frame(sequence, '{}'));
    expect(order.at(-1)).toBe(66);
  });
});

describe('the memory of all channels', () => {
  const large = 'x'.repeat(10_000);
  /** Of about ten such frames. */
  const LIMIT = 110_000;

  it('drops the frames that arrived first, whichever channel has them', () => {
    const memory = new FrameMemory(LIMIT);
    const [quiet, busy] = [started(0, memory), started(0, memory)];
    for (const sequence of [1, 2]) quiet.buffer.put(frame(sequence, large));
    for (let sequence = 1; sequence <= 9; sequence++) busy.buffer.put(frame(sequence, large));
    expect(sequences(quiet.buffer, 0)).toBeNull();
    expect(sequences(quiet.buffer, 1)).toEqual([2]);
    expect(sequences(busy.buffer, 0)).toHaveLength(9);
    for (let sequence = 10; sequence <= 100; sequence++) busy.buffer.put(frame(sequence, large));
    expect(sequences(quiet.buffer, 1)).toBeNull();
    expect(sequences(quiet.buffer, 2)).toEqual([]);
    expect(sequences(busy.buffer, 90)).toHaveLength(10);
    expect(sequences(busy.buffer, 89)).toBeNull();
    expect([quiet.order.length, busy.order.length]).toEqual([2, 100]);
    expect(memory.bytes).toBeLessThanOrEqual(LIMIT);
    expect([memory.takeEvicted(), memory.takeEvicted()]).toEqual([92, 0]);
  });

  it('counts frames that wait for a missing one, and drops them too', () => {
    const memory = new FrameMemory(LIMIT);
    const { buffer, order } = started(0, memory);
    for (let sequence = 2; sequence <= 20; sequence++) buffer.put(frame(sequence, large));
    expect(memory.bytes).toBeLessThanOrEqual(LIMIT);
    // Those that are left follow a gap that only the log can fill.
    for (let sequence = 1; sequence <= 10; sequence++) buffer.put(frame(sequence));
    expect([order.at(-1), buffer.hasGap]).toEqual([10, true]);
    for (let sequence = 11; sequence <= 20; sequence++) buffer.put(frame(sequence, large));
    expect(order).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
  });

  it('gets back what a channel drops by itself, and all of a channel that is closed', () => {
    const memory = new FrameMemory();
    const { buffer } = started(0, memory);
    for (let sequence = 1; sequence <= 300; sequence++) buffer.put(frame(sequence, large));
    expect(memory.bytes).toBeLessThan(1_200_000);
    for (const sequence of [303, 304]) buffer.put(frame(sequence, large));
    buffer.clear();
    expect([memory.bytes, memory.takeEvicted(), buffer.head]).toEqual([0, 0, 300]);
    expect(sequences(buffer, 299)).toBeNull();
  });

  it('does not keep a frame that is larger than its limit, but passes it on', () => {
    const memory = new FrameMemory(1_000);
    const { buffer, order } = started(0, memory);
    for (const sequence of [1, 2, 3]) buffer.put(frame(sequence, large));
    expect([order, memory.bytes]).toEqual([[1, 2, 3], 0]);
    expect(sequences(buffer, 2)).toBeNull();
  });
});
