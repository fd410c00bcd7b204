import { totalmem } from 'node:os';

/** The limit of the container or control group; undefined if there is none. */
export function memoryLimit(): number | undefined {
  const bytes = process.constrainedMemory();
  return bytes > 0 && bytes < totalmem() ? bytes : undefined;
}

/**
 * Measured on two cores under load: a larger young generation, and a collector without helper threads, which compete
 * with the event loop for the cores, reduce the slowest answers. `infra/set-up/start.mjs` repeats the value, because it
 * cannot import this file; a test compares them.
 */
export const DEFAULT_NODE_FLAGS = '--max-semi-space-size=64 --single-threaded-gc';

const MIB = 1024 ** 2;

/**
 * The default flags, or those that fit a small limit. The young generation has three semi-spaces in each of two threads,
 * 384 MiB by default; the old one would grow to a quarter of the limit or more before it is collected thoroughly.
 */
export function nodeFlagsWithin(limit = memoryLimit()): string {
  if (limit === undefined || limit >= 2048 * MIB) return DEFAULT_NODE_FLAGS;
  const semiSpace = limit >= 1024 * MIB ? 16 : limit >= 512 * MIB ? 8 : 2;
  const oldSpace = Math.max(96, Math.floor((limit / MIB) * 0.3));
  return `--max-semi-space-size=${semiSpace} --max-old-space-size=${oldSpace} --single-threaded-gc`;
}
