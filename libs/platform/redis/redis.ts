import { Redis } from 'ioredis';

import { storeUnavailable } from '#libs/kernel/faults.ts';

import { RedisCluster } from './redis-cluster.ts';
import type { RedisClient } from './redis-client.ts';
import { SingleRedis } from './single-redis.ts';

export interface RedisConnectionOptions {
  /** Milliseconds until a command without an answer fails. Default 1,500. */
  readonly commandTimeoutMs?: number;
  /** Called on every connection error; reconnection goes on by itself. */
  readonly onError?: (error: Error) => void;
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
  if (others.length === 0) return new SingleRedis(heard(new Redis(first, connection)));
  const { protocol, username, password } = new URL(first);
  return new RedisCluster({
    seeds: [first, ...others].map(addressOf),
    preferHostnames: protocol === 'rediss:',
    open: (host, port) =>
      heard(
        new Redis({
          ...connection,
          host,
          port,
          ...(username !== '' && { username: decodeURIComponent(username) }),
          ...(password !== '' && { password: decodeURIComponent(password) }),
          ...(protocol === 'rediss:' && { tls: {} }),
        }),
      ),
  });
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
    retryStrategy: (attempt: number): number =>
      Math.min(50 * 2 ** Math.min(attempt, 5), 1_000) * (0.5 + Math.random() / 2),
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
