import { expect, it } from 'vitest';

import { pause } from './backoff.ts';

it('does not pause for a caller that has ended, and ends a pause with its caller', async () => {
  const caller = new AbortController();
  const pausing = pause(60 * 60 * 1_000, caller.signal);
  caller.abort();
  await pausing;
  expect(caller.signal.aborted).toBe(true);
  await pause(60 * 60 * 1_000, caller.signal);
});
