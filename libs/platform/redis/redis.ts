import { Redis } from 'ioredis';

import { storeUnavailable } from '#libs/kernel/faults.ts';
import { backoffMs } from '#libs/platform/lifecycle/index.ts';

import { RedisCluster } from './redis-cluster.ts';
import type { RedisClient } from './redis-client.ts';
import { SingleRedis } from './single-redis.ts';

export interface RedisConnectionOptions {
  /** Milliseconds until a command without an answer fails. Default 1,500. */
  readonly commandTimeoutMs?: number;
  /** Called on every connection error; reconnection goes on by itself. */
  readonly onError?: (error: Error) => void;
  /** Called when a server is not what the addresses say: no repetition mends that. Default: it is left at that. */
  readonly onMisfit?: (why: string) => void;
}

/**
 * Opens a connection that fails fast and never sends a command twice; to a cluster, one to each master.
 *
 * @param url `redis://[[user]:password@]host:port[/db]`; several, separated by commas, are nodes of one cluster, with
 *   the protocol, user and password of the first
 */
export function connectRedis(url: string, options: RedisConnectionOptions = {}): RedisClient {
  const [first = '', ...others] = redisAddresses(url);
  const connection = safeOptions(options.commandTimeoutMs ?? 1_500);
  const heard = (redis: Redis): Redis => redis.on('error', (error: Error) => options.onError?.(error));
  if (others.length === 0) {
    const redis = heard(new Redis(first, connection));
    redis.on('ready', async () => {
      if ((await modeOf(redis)) === 'cluster') options.onMisfit?.(IS_OF_CLUSTER);
    });
    return new SingleRedis(redis);
  }
  const { protocol, username, password } = new URL(first);
  const cluster = new RedisCluster({
    seeds: [first, ...others].map(addressOf),
    preferHostnames: protocol === 'rediss:',
    open(host, port) {
      const redis = heard(
        new Redis({
          ...connection,
          host,
          port,
          ...(username !== '' && { username: decodeURIComponent(username) }),
          ...(password !== '' && { password: decodeURIComponent(password) }),
          ...(protocol === 'rediss:' && { tls: {} }),
        }),
      );
      redis.on('ready', async () => {
        // Of a cluster that is known, an address that is somebody else's by now is one node that is away.
        const isOther = (await modeOf(redis)) === 'standalone' && cluster.nodes().length === 0;
        if (isOther) options.onMisfit?.(IS_OF_NO_CLUSTER);
      });
      return redis;
    },
  });
  return cluster;
}

const IS_OF_CLUSTER =
  'one address is a single server, and this one is a node of a Redis Cluster; give several of its nodes, or this one twice, separated by a comma';
const IS_OF_NO_CLUSTER =
  'several addresses are nodes of a Redis Cluster, and there is a server that is in none; give the address of one server alone';

/** `standalone`, `cluster` or `sentinel`, as a server says itself; undefined where it does not. */
async function modeOf(redis: Redis): Promise<string | undefined> {
  const info = await redis.info('server').catch(() => '');
  return /^redis_mode:(\w+)/m.exec(info)?.[1];
}

/** The addresses that a `REDIS_URL` names. More than one of them is a cluster. */
export function redisAddresses(url: string): string[] {
  return url
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function addressOf(url: string): string {
  const { hostname, port } = new URL(url);
  return `${hostname.replace(/^\[|\]$/g, '')}:${port === '' ? '6379' : port}`;
}

/**
 * The first three options belong together (measured with ioredis 6.0.0): by default a reply that is lost at a
 * reconnection makes ioredis send the command again, and a time-out alone rejects but still executes.
 * Writes must be absolute and guarded all the same: a time-out means "maybe".
 */
function safeOptions(commandTimeout: number) {
  return {
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    commandTimeout,
    connectTimeout: 2_000,
    keepAlive: 5_000,
    retryStrategy: (attempt: number): number => backoffMs(attempt, { maxMs: 1_000 }),
  };
}

/** Resolves once there is a connection to all nodes, or rejects with a fault after `timeoutMs`. */
export async function waitForRedis(redis: RedisClient, timeoutMs: number): Promise<void> {
  if (redis.isReady) return;
  await new Promise<void>((resolve, reject) => {
    const stopWaiting = redis.onReady(() => {
      if (!redis.isReady) return;
      clearTimeout(timer);
      stopWaiting();
      resolve();
    });
    const timer = setTimeout(() => {
      stopWaiting();
      reject(storeUnavailable('redis'));
    }, timeoutMs);
  });
}
