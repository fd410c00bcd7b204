import { Redis } from 'ioredis';

import { Fault, storeUnavailable } from '#libs/kernel/faults.ts';

/** Replies by which Redis says "not now": the command had no effect and a later one may succeed. */
const UNAVAILABLE =
  /^(LOADING|READONLY|OOM|MISCONF|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|NOREPLICAS|NOAUTH|WRONGPASS)\b/;

export interface RedisConnectionOptions {
  /** Milliseconds until a command without an answer fails. Default 1,500. */
  readonly commandTimeoutMs?: number;
  /** Called on every connection error; reconnection goes on by itself. */
  readonly onError?: (error: Error) => void;
}

/**
 * Opens a connection that fails fast and never sends a command twice.
 *
 * The four options belong together (measured with ioredis 6.0.0): by default a reply that is lost at a
 * reconnection makes ioredis send the command again, and a time-out alone rejects but still executes.
 * Writes must be absolute and guarded all the same: a time-out means "maybe".
 *
 * @param url `redis://[:password@]host:port[/db]`
 */
export function connectRedis(url: string, options: RedisConnectionOptions = {}): Redis {
  const redis = new Redis(url, {
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    commandTimeout: options.commandTimeoutMs ?? 1_500,
    connectTimeout: 2_000,
    keepAlive: 5_000,
    retryStrategy: (attempt) => Math.min(50 * 2 ** Math.min(attempt, 5), 1_000) * (0.5 + Math.random() / 2),
  });
  redis.on('error', (error: Error) => options.onError?.(error));
  return redis;
}

/** Resolves once the connection is ready, or rejects with a fault after `timeoutMs`. */
export async function waitForRedis(redis: Redis, timeoutMs: number): Promise<void> {
  if (redis.status === 'ready') return;
  await new Promise<void>((resolve, reject) => {
    const onReady = (): void => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(() => {
      redis.off('ready', onReady);
      reject(storeUnavailable('redis'));
    }, timeoutMs);
    redis.once('ready', onReady);
  });
}

/**
 * Turns what ioredis throws into what it means: Redis is away, slow or refuses writes (a
 * `store_unavailable` fault), or the command itself was wrong (the error as it is, a bug of ours).
 */
export function redisFault(error: unknown): unknown {
  if (error instanceof Fault) return error;
  if (isReplyError(error) && !UNAVAILABLE.test(error.message)) return error;
  return storeUnavailable('redis', error);
}

/** Whether Redis itself answered with an error, as opposed to not answering. */
export function isReplyError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

/** Awaits a Redis reply, with its errors mapped by {@link redisFault}. */
export async function guarded<T>(reply: Promise<T>): Promise<T> {
  try {
    return await reply;
  } catch (error) {
    throw redisFault(error);
  }
}
