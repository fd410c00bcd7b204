import { describe, expect, it } from 'vitest';

import { encodeDismissal, encodeReaction, encodeWithdrawn, marksBefore } from './reaction.marks.ts';

const by = (id: string) => ({
  emoji: '👍',
  reactor: { type: 'user' as const, id, name: null },
  target: { role: 'user' as const, senderId: null },
});

describe('the marks of an interaction', () => {
  it('are in the order of their events, however the set sorts its members', () => {
    const members = [encodeReaction(by('late'), 1_000), encodeReaction(by('first'), 9), encodeReaction(by('then'), 99)];
    expect(marksBefore(Infinity, members.sort()).reactions.map(({ reactor }) => reactor.id)).toEqual([
      'first',
      'then',
      'late',
    ]);
  });

  it('of different events are different members', () => {
    expect(encodeDismissal('user-1', 2)).not.toBe(encodeDismissal('user-1', 3));
  });

  it('before an event include reactions that were removed later', () => {
    const current = [encodeReaction(by('stays'), 5), encodeDismissal('user-1', 8)];
    const withdrawn = [encodeWithdrawn(by('leaves'), { addedSequence: 4, withdrawnSequence: 7 })];
    const before = (end: number) => {
      const { reactions, dismissedBy } = marksBefore(end, current, withdrawn);
      return [...reactions.map(({ reactor }) => reactor.id), ...dismissedBy];
    };
    expect(before(4)).toEqual([]);
    expect(before(5)).toEqual(['leaves']);
    expect(before(6)).toEqual(['leaves', 'stays']);
    expect(before(7)).toEqual(['leaves', 'stays']);
    expect(before(8)).toEqual(['stays']);
    expect(before(9)).toEqual(['stays', 'user-1']);
    expect(before(Infinity)).toEqual(['stays', 'user-1']);
  });

  it('contain a reaction once that is removed between the two reads', () => {
    const withdrawn = [encodeWithdrawn(by('leaves'), { addedSequence: 4, withdrawnSequence: 7 })];
    expect(marksBefore(6, [encodeReaction(by('leaves'), 4)], withdrawn).reactions).toHaveLength(1);
  });
});
