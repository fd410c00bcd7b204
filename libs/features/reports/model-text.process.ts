/** The bounded process that reads what models have written. */
import { serveTasks, TaskError } from '#libs/platform/bounded/index.ts';

import { cleanText, type ModelText } from './model-text.ts';

serveTasks(
  (given: ModelText) => {
    try {
      return cleanText(given);
    } catch (error) {
      // Too deep for the stack: another attempt would end in the same way.
      throw error instanceof RangeError ? new TaskError('refused', error.message) : error;
    }
  },
  { maxIdleBytes: 192 * 1024 * 1024 },
);
