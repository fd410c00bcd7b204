import { expect, it } from 'vitest';

import { bodyMemory, redisMemory, withinMemory, DEFAULT_NODE_FLAGS, nodeStart } from './memory.ts';

const MIB = 1024 ** 2;

it.each([256, 384, 512, 768, 1024, 1536, 2048, 4096, 16_384])('everything fits into a limit of %i MiB', (mib) => {
  const limit = mib * MIB;
  const caches = [128, 48, 64, 128, 64, 16].reduce((sum, each) => sum + withinMemory(each * MIB, limit), 0);
  expect(caches).toBeLessThanOrEqual(Math.min(448 * MIB, limit * 0.22));
  const redis = redisMemory(limit) ?? Infinity;
  expect(redis).toBeGreaterThanOrEqual(limit * 0.19);
  expect(redis).toBeLessThan(limit * 0.6);
  const { flags } = nodeStart({}, limit);
  const semiSpace = Number(/--max-semi-space-size=(\d+)/.exec(flags.join(' '))?.[1]) * MIB;
  // Three in each of two threads.
  expect(6 * semiSpace).toBeLessThanOrEqual(limit / 5);
  // 20 times its bytes for each body, beside 160 MiB, the caches, and Redis.
  expect(20 * bodyMemory(limit)).toBeLessThanOrEqual(limit / 4);
});

it('without a limit, the sizes are the tuned ones, and Redis has no bound', () => {
  expect(withinMemory(64 * MIB, 64 * 1024 * MIB)).toBe(64 * MIB);
  const start = nodeStart({}, 4096 * MIB);
  expect([start.flags.join(' '), start.environment]).toEqual([DEFAULT_NODE_FLAGS, {}]);
});

it('given flags replace those of the limit, and its other settings stay', () => {
  const small = nodeStart({}, 512 * MIB);
  const given = nodeStart({ PARLEY_NODE_FLAGS: ' --max-old-space-size=80  --trace-gc ' }, 512 * MIB);
  expect(given).toEqual({ ...small, flags: ['--max-old-space-size=80', '--trace-gc'] });
  expect(small.environment).toMatchObject({ MALLOC_ARENA_MAX: '2' });
  // Node prefers its arguments to NODE_OPTIONS.
  const { flags } = nodeStart({ NODE_OPTIONS: '--max-old-space-size=300 --require ./x.js' }, 512 * MIB);
  expect(flags).toEqual(small.flags.filter((flag) => !flag.startsWith('--max-old-space-size')));
});
