/* An upgrade leaves read models of older versions behind. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';

import { OldReadModels, projectionKeys, readModelPrefix } from '#libs/platform/readmodel/index.ts';
import { connectRedis, waitForRedis } from '#libs/platform/redis/index.ts';
import { startEmptyRedis } from '#test/support/redis.ts';
import { flush, keysIn, nodeWith } from '#test/support/redis-commands.ts';

let server: Awaited<ReturnType<typeof startEmptyRedis>>;
let redis: ReturnType<typeof connectRedis>;
let old: OldReadModels;

const NAMES = [
  { category: 'thing', version: 2 },
  { category: 'other', version: 1 },
];
const prefixOf = (version: number): string => readModelPrefix({ category: 'thing', version });
const [BEFORE, OURS, AFTER, OTHER] = [prefixOf(1), prefixOf(2), prefixOf(3), readModelPrefix(NAMES[1]!)];
/** Of the time when one version counted for all categories. */
const COMMON = 'parley:rm:v10:';
const checkpointUnder = (prefix: string): string => `${prefix}{projection}:checkpoint`;
const CHECKPOINT = projectionKeys(NAMES[0]!).checkpoint;

beforeAll(async () => {
  server = await startEmptyRedis();
  redis = connectRedis(server.url);
  await waitForRedis(redis, 60_000);
});
afterAll(async () => {
  redis.close();
  await server.stop();
});

beforeEach(async () => {
  await flush(redis);
  old = new OldReadModels(redis, NAMES);
  for (const prefix of [BEFORE, OURS, AFTER, OTHER, COMMON]) {
    await set(`${prefix}{projection}:build`, `build of ${prefix}`);
    await set(checkpointUnder(prefix), '5');
    await set(`${prefix}{projection}:complete`, '1');
    const keys = Array.from({ length: 1_100 }, (_, n) => `${prefix}{o:${n}}:interactions`);
    await Promise.all(keys.map((key) => nodeWith(redis, key).hset(key, '2', '{}')));
  }
  await set('parley:something-else', 'stays');
});

const set = (key: string, value: string): Promise<unknown> => nodeWith(redis, key).set(key, value);
const countUnder = async (prefix: string): Promise<number> => (await keysIn(redis, `${prefix}*`)).length;

it('those of an older version are removed when ours have moved on and they have not', async () => {
  expect(await old.removeUnused()).toEqual([]);
  expect(await old.removeUnused()).toEqual([]);
  await set(CHECKPOINT, '6');
  expect(await old.removeUnused()).toEqual([BEFORE, COMMON]);
  for (const prefix of [BEFORE, COMMON]) expect(await countUnder(prefix)).toBe(0);
  for (const prefix of [OURS, AFTER, OTHER]) expect(await countUnder(prefix)).toBe(1_103);
  expect(await nodeWith(redis, 'parley:something-else').get('parley:something-else')).toBe('stays');
  expect(await old.removeUnused()).toEqual([]);
});

it('those of an older version that a projector still keeps up to date stay', async () => {
  await old.removeUnused();
  for (const position of ['6', '7', '8']) {
    await set(CHECKPOINT, position);
    await set(checkpointUnder(BEFORE), position);
    expect(await old.removeUnused()).toEqual(position === '6' ? [COMMON] : []);
  }
  expect(await countUnder(BEFORE)).toBe(1_103);
});

it('an interrupted removal is continued', async () => {
  await old.removeUnused();
  await set(CHECKPOINT, '6');
  const remove = redis.remove.bind(redis);
  let removals = 0;
  // The first one removes the completeness mark.
  redis.remove = (keys) => (++removals > 1 ? Promise.reject(new Error('cut short')) : remove(keys));
  await expect(old.removeUnused()).rejects.toThrow();
  redis.remove = remove;
  expect(await new OldReadModels(redis, NAMES).removeUnused()).toEqual([]);
  expect(await old.removeUnused()).toEqual([BEFORE, COMMON]);
  expect(await countUnder(BEFORE)).toBe(0);
});
