import { describe, expect, it } from 'vitest';

import { decodeMarks, encodeDismissal, encodeReaction } from './reactions.marks.ts';

const by = (id: string) => ({
  emoji: '👍',
  reactor: { type: 'user' as const, id, name: null },
  target: { role: 'user' as const, senderId: null },
});

describe('the marks of an interaction', () => {
  it('come in the order of reacting, however the set sorts its members', () => {
    const members = [encodeReaction(by('late'), 1_000), encodeReaction(by('first'), 9), encodeReaction(by('then'), 99)];
    expect(decodeMarks(members.sort()).reactions.map(({ reactor }) => reactor.id)).toEqual(['first', 'then', 'late']);
  });

  it('of different interactions are different members', () => {
    expect(encodeDismissal(2, 'user-1')).not.toBe(encodeDismissal(3, 'user-1'));
  });
});
