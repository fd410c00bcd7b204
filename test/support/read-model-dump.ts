import { createHash } from 'node:crypto';

import { READ_MODELS_PREFIX } from '#libs/platform/readmodel/index.ts';
import type { RedisClient } from '#libs/platform/redis/index.ts';

import { keysIn, nodeWith } from './redis-commands.ts';

/** All read-model keys with their whole values, in canonical order, without the state of the projection itself. */
export async function dumpReadModels(redis: RedisClient): Promise<Record<string, unknown>> {
  const keys = (await keysIn(redis, `${READ_MODELS_PREFIX}*`)).filter((key) => !key.includes('{projection}')).sort();
  const dump: Record<string, unknown> = {};
  for (const key of keys) dump[key] = await valueOf(redis, key);
  return dump;
}

export function digestOfDump(dump: Record<string, unknown>): string {
  return createHash('sha256').update(JSON.stringify(dump)).digest('hex');
}

async function valueOf(redis: RedisClient, key: string): Promise<unknown> {
  const node = nodeWith(redis, key);
  const type = await node.type(key);
  switch (type) {
    case 'string':
      // Not all values are text.
      return (await node.getBuffer(key))?.toString('latin1');
    case 'hash':
      return Object.entries(await node.hgetall(key)).sort(([a], [b]) => (a < b ? -1 : 1));
    case 'zset':
      return node.zrange(key, '0', '-1', 'WITHSCORES');
    case 'set':
      return (await node.smembers(key)).sort();
    default:
      throw new TypeError(`a read model holds a ${type} (${key}), which this dump does not know`);
  }
}
