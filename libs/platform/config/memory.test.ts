import { expect, it } from 'vitest';

import { redisMemory, withinMemory } from './memory.ts';
import { nodeFlagsWithin, DEFAULT_NODE_FLAGS } from './node-flags.ts';

const MIB = 1024 ** 2;

it.each([256, 384, 512, 768, 1024, 1536, 2048, 4096, 16_384])('everything fits into a limit of %i MiB', (mib) => {
  const limit = mib * MIB;
  const caches = [128, 64, 64, 128, 64].reduce((sum, each) => sum + withinMemory(each * MIB, limit), 0);
  expect(caches).toBeLessThanOrEqual(Math.min(448 * MIB, limit * 0.22));
  const redis = redisMemory(limit) ?? Infinity;
  expect(redis).toBeGreaterThanOrEqual(limit / 4);
  expect(redis).toBeLessThan(limit * 0.6);
  const semiSpace = Number(/--max-semi-space-size=(\d+)/.exec(nodeFlagsWithin(limit))?.[1]) * MIB;
  // Three in each of two threads.
  expect(6 * semiSpace).toBeLessThanOrEqual(limit / 5);
});

it('without a limit, the sizes are the tuned ones, and Redis has no bound', () => {
  expect(withinMemory(64 * MIB, 64 * 1024 * MIB)).toBe(64 * MIB);
  expect(nodeFlagsWithin(4096 * MIB)).toBe(DEFAULT_NODE_FLAGS);
});
