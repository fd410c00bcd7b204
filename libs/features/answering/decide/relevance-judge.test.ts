import { describe, expect, it } from 'vitest';

import { MIN_SHARE, relevanceOf } from './relevance-judge.ts';

const about = ['Ada', 'Answers questions about deliveries and returns', 'The warehouse in Bremen opens at nine'];

describe('the relevance of a message', () => {
  it('is the share of its words that are known, in any inflection', () => {
    expect(relevanceOf('When does the warehouse open?', about)).toBe(1);
    expect(relevanceOf('Where is my delivery from Bremen, Grace?', about)).toBeCloseTo(2 / 3);
    expect(relevanceOf('returning a zeppelin', about)).toBe(MIN_SHARE);
  });

  it('is nothing for a message about something else, or without words', () => {
    for (const message of ['Thanks, good morning', '???', '', 'The of and'])
      expect(relevanceOf(message, about)).toBe(0);
    expect(relevanceOf('When does the warehouse open?', [])).toBe(0);
  });
});
