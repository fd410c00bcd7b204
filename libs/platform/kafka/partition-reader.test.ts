import type { KafkaMessage } from 'kafkajs';
import { describe, expect, it } from 'vitest';
import { LostError, PartitionReader } from './partition-reader.ts';

const position = { commit: 7n, prepare: 7n };
const reader = (checkpoint: string): PartitionReader => new PartitionReader({ checkpoint, position });
const offsets = (messages: readonly KafkaMessage[]): string[] => messages.map(({ offset }) => offset);

/** The messages of a partition; the timestamp of the one at offset n is `from + n`. */
function messages(first: number, count: number, from = 1_000): KafkaMessage[] {
  return Array.from({ length: count }, (_, index) => ({
    key: null,
    value: null,
    attributes: 0,
    timestamp: `${from + first + index}`,
    offset: `${first + index}`,
    headers: {},
  }));
}

describe('reader of a partition', () => {
  it('begins one message before its checkpoint, and skips that message', () => {
    const one = reader('5:1004');
    expect(one.seekTo).toBe(4n);
    const unread = one.unread(messages(4, 3));
    expect(offsets(unread)).toEqual(['5', '6']);
    expect(one.delivered(6n, { last: unread.at(-1), position })).toEqual({ checkpoint: '7:1006', position });
    expect(one.seekTo).toBe(7n);
  });

  it('begins with the first message where the checkpoint is 0', () => {
    const one = reader('0:');
    expect(one.seekTo).toBe(0n);
    expect(offsets(one.unread(messages(0, 2)))).toEqual(['0', '1']);
  });

  it('reports its checkpoint with a timestamp although no message follows it', () => {
    const one = reader('5:');
    const unread = one.unread(messages(4, 1));
    expect(one.delivered(4n, { last: unread.at(-1), position })).toEqual({ checkpoint: '5:1004', position });
  });

  it('continues after refused messages, and keeps its checkpoint before them', () => {
    const one = reader('5:1004');
    one.unread(messages(4, 1));
    expect(one.delivered(7n, { last: undefined, position })).toEqual({ checkpoint: '5:1004', position });
    expect([one.next, one.seekTo]).toEqual([8n, 8n]);
    const [taken] = one.unread(messages(8, 2));
    expect(one.delivered(9n, { last: taken, position })).toEqual({ checkpoint: '9:1008', position });
    expect(one.next).toBe(10n);
  });

  it('reads its last message again, accepted or refused, to verify the topic', () => {
    const one = reader('5:1004');
    one.delivered(6n, { last: one.unread(messages(4, 3)).at(0), position });
    one.verifyAgain();
    expect([one.next, one.seekTo]).toEqual([7n, 6n]);
    expect(one.delivered(5n, { last: undefined, position })).toBeNull();
    expect(offsets(one.unread(messages(6, 2)))).toEqual(['7']);
    expect(one.delivered(7n, { last: undefined, position })).toEqual({ checkpoint: '6:1005', position });
    one.verifyAgain();
    expect(one.unread(messages(7, 1))).toEqual([]);
    expect(one.delivered(7n, { last: undefined, position })).toBeNull();
    one.verifyAgain();
    expect(() => one.unread(messages(7, 2, 2_000))).toThrow(LostError);
  });

  it('has nothing to verify where it has read no message', () => {
    const one = reader('0:');
    one.verifyAgain();
    expect(one.seekTo).toBe(0n);
    expect(offsets(one.unread(messages(0, 2)))).toEqual(['0', '1']);
  });

  it('is lost where the message before its checkpoint differs or is missing', () => {
    expect(() => reader('5:1004').unread(messages(4, 3, 2_000))).toThrow(LostError);
    expect(() => reader('5:').unread(messages(6, 3))).toThrow(LostError);
  });

  it('is lost where Kafka has deleted the next message, or ends before it', () => {
    expect(() => reader('5:1004').checkBounds(5n, 9n)).toThrow(LostError);
    expect(() => reader('5:1004').checkBounds(0n, 4n)).toThrow(LostError);
    expect(() => reader('5:1004').checkBounds(4n, 5n)).not.toThrow();
  });

  it('skips repeated messages, and waits for the message before its checkpoint', () => {
    const one = reader('5:1004');
    expect(offsets(one.unread(messages(0, 3)))).toEqual([]);
    expect(one.delivered(2n, { last: undefined, position })).toBeNull();
    expect(offsets(one.unread(messages(2, 4)))).toEqual(['5']);
  });

  it('requests the messages before a batch that leaves a gap, and gives up after several attempts', () => {
    const one = reader('5:1004');
    expect(one.holeBefore(4n)).toBeNull();
    for (let time = 0; time < 3; time++) expect(one.holeBefore(8n)).toBe(4n);
    expect(() => one.holeBefore(8n)).toThrow(LostError);
  });

  it('does not continue with the first message of a topic that was created again', () => {
    const one = reader('5:1004');
    one.delivered(4n, { last: one.unread(messages(4, 1)).at(-1), position });
    // kafkajs returns to the first message where the requested offset does not exist.
    for (let time = 0; time < 3; time++) expect(one.holeBefore(0n)).toBe(5n);
    expect(() => one.holeBefore(0n)).toThrow(LostError);
  });
});
