/* An upgrade leaves read models behind that nobody reads any more. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';

import {
  OldReadModels,
  PROJECTION_KEYS,
  READ_MODEL_PREFIX,
  READ_MODEL_VERSION,
} from '#libs/platform/readmodel/index.ts';
import { connectRedis, waitForRedis } from '#libs/platform/redis/index.ts';
import { startTestRedis } from '#test/support/redis.ts';

let server: Awaited<ReturnType<typeof startTestRedis>>;
let redis: ReturnType<typeof connectRedis>;
let old: OldReadModels;

const BEFORE = READ_MODEL_VERSION - 1;
const ofVersion = (version: number, rest: string): string => `parley:rm:v${version}:${rest}`;
const checkpointOf = (version: number): string => ofVersion(version, '{projection}:checkpoint');

beforeAll(async () => {
  server = await startTestRedis();
  redis = connectRedis(server.url);
  await waitForRedis(redis, 5_000);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

/** Three versions beside each other, of which ours is the second. */
beforeEach(async () => {
  await redis.flushall();
  old = new OldReadModels(redis);
  for (const version of [BEFORE, READ_MODEL_VERSION, READ_MODEL_VERSION + 1]) {
    await redis.mset(ofVersion(version, '{projection}:build'), `build ${version}`, checkpointOf(version), '5');
    await redis.set(ofVersion(version, '{projection}:complete'), '1');
    for (let n = 0; n < 1_500; n++) await redis.hset(ofVersion(version, `channel:{o:${n}}:interactions`), '2', '{}');
  }
  await redis.set('parley:something-else', 'stays');
});

const keysOf = (version: number): Promise<string[]> => redis.keys(ofVersion(version, '*'));

it('those of an older version go when ours have moved on and they have not', async () => {
  expect(await old.look()).toEqual([]);
  expect(await old.look()).toEqual([]);
  await redis.set(PROJECTION_KEYS.checkpoint, '6');
  expect(await old.look()).toEqual([BEFORE]);
  expect(await keysOf(BEFORE)).toEqual([]);
  expect(await redis.keys(`${READ_MODEL_PREFIX}*`)).toHaveLength(1_503);
  expect(await keysOf(READ_MODEL_VERSION + 1)).toHaveLength(1_503);
  expect(await redis.get('parley:something-else')).toBe('stays');
  expect(await old.look()).toEqual([]);
});

it('those of an older version that is still at work stay', async () => {
  await old.look();
  for (const position of ['6', '7', '8']) {
    await redis.mset(PROJECTION_KEYS.checkpoint, position, checkpointOf(BEFORE), position);
    expect(await old.look()).toEqual([]);
  }
  expect(await keysOf(BEFORE)).toHaveLength(1_503);
});

it('a removal that was cut short is made up for', async () => {
  await old.look();
  await redis.set(PROJECTION_KEYS.checkpoint, '6');
  const unlink = redis.unlink.bind(redis);
  redis.unlink = () => Promise.reject(new Error('cut short'));
  await expect(old.look()).rejects.toThrow();
  redis.unlink = unlink;
  expect(await new OldReadModels(redis).look()).toEqual([]);
  expect(await old.look()).toEqual([BEFORE]);
  expect(await keysOf(BEFORE)).toEqual([]);
});
