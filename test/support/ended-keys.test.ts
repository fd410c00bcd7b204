import { expect, it } from 'vitest';

import { acceptedTooLate } from './ended-keys.ts';

const announced = { name: 'announced', endedAtMs: 10_000, announced: true };
const unannounced = { name: 'unannounced', endedAtMs: 10_000, announced: false };
const use = { what: 'GET', startedAtMs: 0, accepted: true };

it('allows a second after an announced end, a minute after an unannounced one, and nothing to a process started later', () => {
  const fine = [
    { ...use, key: announced, sentAtMs: 10_900 },
    { ...use, key: announced, sentAtMs: 20_000, accepted: false },
    { ...use, key: unannounced, sentAtMs: 69_000 },
    { ...use, key: unannounced, sentAtMs: 9_000, startedAtMs: 8_000 },
    { ...use, key: announced, sentAtMs: 12_900, isDelivery: true },
  ];
  expect(acceptedTooLate(fine)).toEqual([]);
  const late = [
    { ...use, key: announced, sentAtMs: 11_100 },
    { ...use, key: unannounced, sentAtMs: 71_000 },
    { ...use, key: unannounced, sentAtMs: 12_100, startedAtMs: 12_000 },
    { ...use, what: 'an event', key: announced, sentAtMs: 13_100, isDelivery: true },
  ];
  expect(acceptedTooLate([...fine, ...late])).toEqual([
    'announced: GET was accepted 1100 ms after the end',
    'unannounced: GET was accepted 61000 ms after the end',
    'unannounced: GET was accepted 2100 ms after the end, by a process started after it',
    'announced: an event was accepted 3100 ms after the end',
  ]);
});
