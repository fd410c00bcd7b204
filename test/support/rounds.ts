/**
 * Length of randomized tests. `PARLEY_TEST_ROUNDS` multiplies their rounds: 1 in `npm test`, 2 in `.ci/run`, 10 in
 * `npm run test:nightly`. `seed.ts` chooses the cases.
 */
import { z } from 'zod';

const FACTOR = z.coerce
  .number()
  .positive()
  .parse(process.env['PARLEY_TEST_ROUNDS'] || 1);

/** Rounds of a test that runs `count` of them in `npm test`. */
export const rounds = (count: number): number => Math.max(1, Math.round(count * FACTOR));

/**
 * Whether `npm run test:<campaign>` runs. What repeats a property in many forms runs all of them there, and a few in
 * `npm test`.
 */
export const IN_CAMPAIGN = process.env['PARLEY_TEST_CAMPAIGN'] === '1';

/** Timeout of a test whose rounds are multiplied. */
export const roundsTimeoutMs = (timeoutMs: number): number => timeoutMs * Math.max(1, FACTOR);
