import type { StandaloneParts } from './app.ts';

/** What `standalone` is made of besides the stores. */
export const parts: StandaloneParts = {
  roles: [],
};
