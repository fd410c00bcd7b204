/**
 * The seed of randomized tests. `npm test` and `.ci/run` try the same cases each time, so that a run fails because of
 * a change and never by chance. Campaigns (`npm run test:nightly`) try other cases each time. `PARLEY_TEST_SEED`
 * repeats a failed run: its seed is in the report of the failed property.
 */
import fc from 'fast-check';

import { IN_CAMPAIGN } from './rounds.ts';

const given = process.env['PARLEY_TEST_SEED'];
if (given) fc.configureGlobal({ seed: Number(given) });
else if (!IN_CAMPAIGN) fc.configureGlobal({ seed: 20_261_126 });
