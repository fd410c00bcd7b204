import { describe, expect, it } from 'vitest';

import { streamRevision } from '#libs/kernel/event.ts';

import { FoldedStates } from './folded-states.ts';

const KIB = 1024;

/** A write of so many characters. */
function write(revisionKey: string, length: number, revision = 0) {
  const last = streamRevision(revision);
  return {
    revisionKey,
    first: last,
    last,
    operations: [{ command: 'SET', key: 'k', args: ['x'.repeat(length)] }],
  } as const;
}

const stateOf = (length: number): string => 'x'.repeat(length - 2);

describe('folded states', () => {
  it('are found by their revision key until they are deleted', () => {
    const states = new FoldedStates();
    states.put(write('a', 10), { one: 1 });
    expect(states.get('a')).toMatchObject({ revision: 0, state: { one: 1 } });
    states.delete('a');
    expect(states.get('a')).toBeUndefined();
    expect(states.bytes).toBe(0);
  });

  it('stay within their limit: those that were used least recently are dropped', () => {
    const states = new FoldedStates(100 * KIB);
    for (const key of ['a', 'b', 'c']) states.put(write(key, 1), stateOf(15 * KIB));
    states.get('a');
    states.put(write('d', 1), stateOf(15 * KIB));
    expect(['a', 'b', 'c', 'd'].filter((key) => states.get(key) !== undefined)).toEqual(['a', 'c', 'd']);
    states.put(write('e', 1), stateOf(200 * KIB));
    expect(states.get('e')).toBeUndefined();
    expect(states.bytes).toBeLessThanOrEqual(100 * KIB);
  });

  it('count as grown by what was written, until they are measured again', () => {
    const states = new FoldedStates();
    states.put(write('a', 30 * KIB), stateOf(10 * KIB));
    expect(states.bytes).toBe(21 * KIB);
    states.put(write('a', 10 * KIB, 1), stateOf(20 * KIB));
    expect(states.bytes).toBe(41 * KIB);
    states.put(write('a', 1, 2), stateOf(3 * KIB));
    expect(states.bytes).toBe(7 * KIB);
    states.put(write('a', 8 * KIB, 3), stateOf(4 * KIB));
    expect(states.bytes).toBe(23 * KIB);
  });
});
