/* An upgrade leaves read models behind that nobody reads any more. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';

import {
  OldReadModels,
  PROJECTION_KEYS,
  READ_MODEL_PREFIX,
  READ_MODEL_VERSION,
} from '#libs/platform/readmodel/index.ts';
import { connectRedis, waitForRedis } from '#libs/platform/redis/index.ts';
import { startEmptyRedis } from '#test/support/redis.ts';
import { flush, keysIn, nodeWith } from '#test/support/redis-commands.ts';

let server: Awaited<ReturnType<typeof startEmptyRedis>>;
let redis: ReturnType<typeof connectRedis>;
let old: OldReadModels;

const BEFORE = READ_MODEL_VERSION - 1;
const ofVersion = (version: number, rest: string): string => `parley:rm:v${version}:${rest}`;
const checkpointOf = (version: number): string => ofVersion(version, '{projection}:checkpoint');

beforeAll(async () => {
  server = await startEmptyRedis();
  redis = connectRedis(server.url);
  await waitForRedis(redis, 5_000);
});
afterAll(async () => {
  redis.close();
  await server.stop();
});

/** Three versions beside each other, of which ours is the second. */
beforeEach(async () => {
  await flush(redis);
  old = new OldReadModels(redis);
  for (const version of [BEFORE, READ_MODEL_VERSION, READ_MODEL_VERSION + 1]) {
    await set(ofVersion(version, '{projection}:build'), `build ${version}`);
    await set(checkpointOf(version), '5');
    await set(ofVersion(version, '{projection}:complete'), '1');
    for (let n = 0; n < 1_500; n++) {
      const key = ofVersion(version, `channel:{o:${n}}:interactions`);
      await nodeWith(redis, key).hset(key, '2', '{}');
    }
  }
  await set('parley:something-else', 'stays');
});

const set = (key: string, value: string): Promise<unknown> => nodeWith(redis, key).set(key, value);
const keysOf = (version: number): Promise<string[]> => keysIn(redis, ofVersion(version, '*'));

it('those of an older version go when ours have moved on and they have not', async () => {
  expect(await old.look()).toEqual([]);
  expect(await old.look()).toEqual([]);
  await set(PROJECTION_KEYS.checkpoint, '6');
  expect(await old.look()).toEqual([BEFORE]);
  expect(await keysOf(BEFORE)).toEqual([]);
  expect(await keysIn(redis, `${READ_MODEL_PREFIX}*`)).toHaveLength(1_503);
  expect(await keysOf(READ_MODEL_VERSION + 1)).toHaveLength(1_503);
  expect(await nodeWith(redis, 'parley:something-else').get('parley:something-else')).toBe('stays');
  expect(await old.look()).toEqual([]);
});

it('those of an older version that is still at work stay', async () => {
  await old.look();
  for (const position of ['6', '7', '8']) {
    await set(PROJECTION_KEYS.checkpoint, position);
    await set(checkpointOf(BEFORE), position);
    expect(await old.look()).toEqual([]);
  }
  expect(await keysOf(BEFORE)).toHaveLength(1_503);
});

it('a removal that was cut short is made up for', async () => {
  await old.look();
  await set(PROJECTION_KEYS.checkpoint, '6');
  const remove = redis.remove.bind(redis);
  let removals = 0;
  // The first takes away what says that the old ones are complete.
  redis.remove = (keys) => (++removals > 1 ? Promise.reject(new Error('cut short')) : remove(keys));
  await expect(old.look()).rejects.toThrow();
  redis.remove = remove;
  expect(await new OldReadModels(redis).look()).toEqual([]);
  expect(await old.look()).toEqual([BEFORE]);
  expect(await keysOf(BEFORE)).toEqual([]);
});
