import { createHash } from 'node:crypto';

import type { Redis } from 'ioredis';

import { PROJECTION_KEYS, READ_MODEL_PREFIX } from '#libs/platform/readmodel/index.ts';

/** Every read-model key with its whole value, in canonical order; the state of the projection itself is left out. */
export async function dumpReadModels(redis: Redis): Promise<Record<string, unknown>> {
  const own = new Set<string>(Object.values(PROJECTION_KEYS));
  const keys = (await redis.keys(`${READ_MODEL_PREFIX}*`)).filter((key) => !own.has(key)).sort();
  const dump: Record<string, unknown> = {};
  for (const key of keys) dump[key] = await valueOf(redis, key);
  return dump;
}

export function digestOfDump(dump: Record<string, unknown>): string {
  return createHash('sha256').update(JSON.stringify(dump)).digest('hex');
}

async function valueOf(redis: Redis, key: string): Promise<unknown> {
  const type = await redis.type(key);
  switch (type) {
    case 'string':
      // Not all of them are text.
      return (await redis.getBuffer(key))?.toString('latin1');
    case 'hash':
      return Object.entries(await redis.hgetall(key)).sort(([a], [b]) => (a < b ? -1 : 1));
    case 'zset':
      return redis.zrange(key, '0', '-1', 'WITHSCORES');
    case 'set':
      return (await redis.smembers(key)).sort();
    default:
      throw new TypeError(`a read model holds a ${type} (${key}), which this dump does not know`);
  }
}
