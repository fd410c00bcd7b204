import type { Redis } from 'ioredis';

import { Fault } from '#libs/kernel/faults.ts';
import { guarded } from '#libs/platform/redis/redis.ts';

import { COMPLETE_KEY } from './read-model.keys.ts';

/**
 * Whether the read models hold the whole log. While they do not (a first start on an old log, an emptied
 * Redis, a rebuild), "not there" may mean "not yet", and a list may lack entries.
 */
export async function isComplete(redis: Redis): Promise<boolean> {
  return (await guarded(redis.exists(COMPLETE_KEY))) === 1;
}

/** @throws `Fault` `not_caught_up` (503) while the read models are being built */
export async function requireComplete(redis: Redis): Promise<void> {
  if (await isComplete(redis)) return;
  throw new Fault('not_caught_up', 'The read models are being built', { retryAfterSeconds: 2 });
}
