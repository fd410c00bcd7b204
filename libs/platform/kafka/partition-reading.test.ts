import type { KafkaMessage } from 'kafkajs';
import { describe, expect, it } from 'vitest';
import { LostError, PartitionReading } from './partition-reading.ts';

const position = { commit: 7n, prepare: 7n };
const reading = (checkpoint: string): PartitionReading => new PartitionReading({ checkpoint, position });
const offsets = (messages: readonly KafkaMessage[]): string[] => messages.map(({ offset }) => offset);

/** Messages as they lie in a partition; the one at offset n was sent at `from + n`. */
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

describe('reading of a partition', () => {
  it('begins one message before its checkpoint, and passes that over', () => {
    const one = reading('5:1004');
    expect(one.seekTo).toBe(4n);
    const fresh = one.fresh(messages(4, 3));
    expect(offsets(fresh)).toEqual(['5', '6']);
    expect(one.passed(6n, { last: fresh.at(-1), position })).toEqual({ checkpoint: '7:1006', position });
    expect(one.seekTo).toBe(7n);
  });

  it('begins at the first message where nothing was passed yet', () => {
    const one = reading('0:');
    expect(one.seekTo).toBe(0n);
    expect(offsets(one.fresh(messages(0, 2)))).toEqual(['0', '1']);
  });

  it('says where it is although nothing follows its checkpoint', () => {
    const one = reading('5:');
    const fresh = one.fresh(messages(4, 1));
    expect(one.passed(4n, { last: fresh.at(-1), position })).toEqual({ checkpoint: '5:1004', position });
  });

  it('reads on behind what was refused, and leaves its checkpoint before that', () => {
    const one = reading('5:1004');
    one.fresh(messages(4, 1));
    expect(one.passed(7n, { last: undefined, position })).toEqual({ checkpoint: '5:1004', position });
    expect([one.next, one.seekTo]).toEqual([8n, 8n]);
    const [taken] = one.fresh(messages(8, 2));
    expect(one.passed(9n, { last: taken, position })).toEqual({ checkpoint: '9:1008', position });
    expect(one.next).toBe(10n);
  });

  it('reads the last message again that it has passed, taken or not, when it is in doubt of the topic', () => {
    const one = reading('5:1004');
    one.passed(6n, { last: one.fresh(messages(4, 3)).at(0), position });
    one.doubt();
    expect([one.next, one.seekTo]).toEqual([7n, 6n]);
    expect(one.passed(5n, { last: undefined, position })).toBeNull();
    expect(offsets(one.fresh(messages(6, 2)))).toEqual(['7']);
    expect(one.passed(7n, { last: undefined, position })).toEqual({ checkpoint: '6:1005', position });
    one.doubt();
    expect(one.fresh(messages(7, 1))).toEqual([]);
    expect(one.passed(7n, { last: undefined, position })).toBeNull();
    one.doubt();
    expect(() => one.fresh(messages(7, 2, 2_000))).toThrow(LostError);
  });

  it('has nothing to doubt of a partition of which it has seen no message', () => {
    const one = reading('0:');
    one.doubt();
    expect(one.seekTo).toBe(0n);
    expect(offsets(one.fresh(messages(0, 2)))).toEqual(['0', '1']);
  });

  it('is lost where the message before its checkpoint is another one, or gone', () => {
    expect(() => reading('5:1004').fresh(messages(4, 3, 2_000))).toThrow(LostError);
    expect(() => reading('5:').fresh(messages(6, 3))).toThrow(LostError);
  });

  it('is lost where Kafka has deleted what follows, or has not got so far', () => {
    expect(() => reading('5:1004').checkBounds(5n, 9n)).toThrow(LostError);
    expect(() => reading('5:1004').checkBounds(0n, 4n)).toThrow(LostError);
    expect(() => reading('5:1004').checkBounds(4n, 5n)).not.toThrow();
  });

  it('passes over what comes again, and waits for the message before its checkpoint', () => {
    const one = reading('5:1004');
    expect(offsets(one.fresh(messages(0, 3)))).toEqual([]);
    expect(one.passed(2n, { last: undefined, position })).toBeNull();
    expect(offsets(one.fresh(messages(2, 4)))).toEqual(['5']);
  });

  it('asks again for what lies before a batch that does not follow, and gives up in the end', () => {
    const one = reading('5:1004');
    expect(one.holeBefore(4n)).toBeNull();
    for (let time = 0; time < 3; time++) expect(one.holeBefore(8n)).toBe(4n);
    expect(() => one.holeBefore(8n)).toThrow(LostError);
  });

  it('does not take what a topic begins with for what follows, when that topic was made anew', () => {
    const one = reading('5:1004');
    one.passed(4n, { last: one.fresh(messages(4, 1)).at(-1), position });
    // kafkajs goes back to the first message where the offset that it asks for is not there.
    for (let time = 0; time < 3; time++) expect(one.holeBefore(0n)).toBe(5n);
    expect(() => one.holeBefore(0n)).toThrow(LostError);
  });
});
