/** Commands with which tests change a Redis directly, on one server or a cluster. */
import type { Redis } from 'ioredis';

import type { RedisClient } from '#libs/platform/redis/index.ts';

/** The connection for commands on a key. */
export function nodeWith(redis: RedisClient, key: string): Redis {
  const node = redis.nodeOf(key);
  if (node === null) throw new Error(`no node is known to have ${key}`);
  return node;
}

/** All matching keys, each once. */
export async function keysIn(redis: RedisClient, match: string): Promise<string[]> {
  const keys = new Set<string>();
  for await (const some of redis.scan(match, 10_000)) for (const key of some) keys.add(key);
  return [...keys];
}

/** Deletes all keys of all nodes. */
export async function flush(redis: RedisClient): Promise<void> {
  await Promise.all(redis.nodes().map((node) => node.flushall()));
}
