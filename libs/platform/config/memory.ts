/** What fits in the memory that the system gives Parley. */
import { memoryLimit } from './node-flags.ts';

const GIB = 1024 ** 3;
/** From here on, caches have their full size. */
const AMPLE_BYTES = 2 * GIB;

/** The bound of a cache: `bytes` where memory is ample, else the same share of the limit. */
export function withinMemory(bytes: number, limit = memoryLimit()): number {
  return Math.floor(bytes * Math.min(1, (limit ?? AMPLE_BYTES) / AMPLE_BYTES));
}

/**
 * The most that the private Redis may hold beside Parley: then it refuses writes by name, where the system would kill a
 * process. The rest is for Parley, and for the copy that Redis makes while it rewrites its file. Undefined: no bound.
 */
export function redisMemory(limit = memoryLimit()): number | undefined {
  return limit === undefined ? undefined : Math.floor(Math.max(0.25 * limit, 0.6 * limit - 0.7 * GIB));
}
