/** Sizes that fit in the memory that the system gives Parley. */
import { totalmem } from 'node:os';

import { AMPLE_BYTES, memoryLimit } from './node-flags.ts';

const GIB = 1024 ** 3;

/** The bound of a cache in bytes, or of a batch in events: `most` where memory is ample, else the same share of the limit. */
export function withinMemory(most: number, limit = memoryLimit()): number {
  return Math.floor(most * Math.min(1, (limit ?? AMPLE_BYTES) / AMPLE_BYTES));
}

/**
 * The most that the private Redis may hold beside Parley: then it refuses writes by name, where the system would kill a
 * process. It takes a fifth more of the system, and copies some of it while it rewrites its file; the rest of the limit is
 * for Parley. Undefined: no bound.
 */
export function redisMemory(limit = memoryLimit()): number | undefined {
  return limit === undefined ? undefined : Math.floor(Math.max(0.2 * limit, 0.6 * limit - 0.7 * GIB));
}

/**
 * Bytes of request bodies that a process works on at a time. A body takes up to 20 times its bytes until it is answered:
 * as text, parsed, as events, and in the buffers of both sides of the event store and of Redis.
 */
export function bodyMemory(limit = memoryLimit() ?? totalmem()): number {
  return Math.floor(limit / 96);
}
