import { describe, expect, it } from 'vitest';

import { pauseMs } from './backoff.ts';
import { meaningOf } from './close-codes.ts';

describe('after the end of a connection', () => {
  it.each([1000, 1001, 1005, 1006, 1011, 1012, 4000, 4008, 4009, 4010, 4013, 4014, 4499])(
    '%i: the client resumes',
    (code) => {
      expect(meaningOf(code, '')).toBe('resume');
    },
  );
  // The client sends no frame that Parley would close for with these codes.
  it.each([1002, 1003, 1007, 1008, 1009, 1010, 1015, 3000, 3008])('%i of a proxy: the client resumes', (code) => {
    expect(meaningOf(code, 'idle timeout')).toBe('resume');
  });
  it('1008 of Parley: the client fetches another ticket', () => {
    expect(meaningOf(1008, 'No valid ticket')).toBe('new ticket');
  });
  it.each([4500, 4501, 4503, 4504, 4999])('%i: the client gives up', (code) => {
    expect(meaningOf(code, '')).toBe('give up');
  });

  it('the pause is random, below a bound that doubles up to a limit', () => {
    const bounds = [1, 2, 3, 4, 100].map((attempt) => pauseMs(attempt, { firstMs: 100, maxMs: 500 }, () => 1));
    expect(bounds).toEqual([100, 200, 400, 500, 500]);
    expect(pauseMs(3, { firstMs: 100 }, () => 0)).toBe(0);
    expect(pauseMs(3, { firstMs: 100 }, () => 0.5)).toBe(200);
  });
});
