import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { boundedHistory, DROPPED_RESULT, estimatedTokens } from './history.ts';
import type { ModelMessage } from './model.ts';

const user = (text: string): ModelMessage => ({ role: 'user', text });
const says = (text: string): ModelMessage => ({ role: 'assistant', text, toolCalls: [] });
const calls = (id: string): ModelMessage => ({
  role: 'assistant',
  text: '',
  toolCalls: [{ id, name: 'search', input: {} }],
});
const result = (callId: string, text: string): ModelMessage => ({ role: 'tool', callId, name: 'search', result: text });

const long = 'x'.repeat(3_000);

describe('the history that a model is given', () => {
  it('is the whole conversation if that fits', () => {
    const messages = [user('a'), calls('1'), result('1', long), says('b'), user('c')];
    expect(boundedHistory(messages, 5_000)).toEqual(messages);
  });

  it('loses the oldest results of tools first', () => {
    const messages = [
      user('a'),
      calls('1'),
      result('1', long),
      says('b'),
      user('c'),
      calls('2'),
      result('2', long),
      user('d'),
    ];
    expect(boundedHistory(messages, 1_500)).toEqual(messages.with(2, result('1', DROPPED_RESULT)));
  });

  it('loses whole turns next, the oldest first', () => {
    const messages = [user(long), calls('1'), result('1', long), says('b'), user('c'), says('d'), user('e')];
    expect(boundedHistory(messages, 200)).toEqual([user('c'), says('d'), user('e')]);
  });

  it('keeps the results that the model is to answer from', () => {
    const messages = [user(long), says(long), user('c'), calls('2'), result('2', long), result('3', long)];
    expect(boundedHistory(messages, 2_200)).toEqual(messages.slice(2));
  });

  it('cuts the longest text of a last turn that is too long by itself', () => {
    const [only] = boundedHistory([user('old'), user(`begin ${'äöü'.repeat(5_000)} end`)], 300);
    expect(only).toMatchObject({
      role: 'user',
      text: expect.stringMatching(/^begin (äöü)+[^\uFFFD]*\n\[…\]\n[^\uFFFD]* end$/),
    });
  });

  it('stays within the limit, keeps the end, and separates no call from its result', () => {
    const turn = fc
      .record({
        text: fc.string({ unit: 'grapheme', maxLength: 400 }),
        results: fc.array(fc.string({ maxLength: 900 }), { maxLength: 3 }),
      })
      .map(({ text, results }) => [
        user(text),
        ...results.flatMap((one, index) => [calls(`${text}${index}`), result(`${text}${index}`, one)]),
      ]);
    fc.assert(
      fc.property(
        fc.array(turn, { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 400, max: 2_000 }),
        (turns, max) => {
          const messages = turns.flat();
          const kept = boundedHistory(messages, max);
          const texts = kept.map((one) => (one.role === 'tool' ? one.result : one.text));
          expect(estimatedTokens(texts.join(''))).toBeLessThanOrEqual(max);
          expect(kept.map(({ role }) => role)).toEqual(messages.slice(-kept.length).map(({ role }) => role));
          expect(kept[0]?.role).toBe('user');
        },
      ),
    );
  });
});
