import type { ConnectionOptions } from 'node:tls';

import { Redis } from 'ioredis';

import { storeUnavailable } from '#libs/kernel/faults.ts';
import { backoffMs, within } from '#libs/platform/lifecycle/index.ts';

import { RedisCluster } from './redis-cluster.ts';
import { COMMAND_TIMEOUT_MS, type RedisClient } from './redis-client.ts';
import { describeServer, misfitOf } from './server-check.ts';
import { SingleRedis } from './single-redis.ts';

export interface RedisConnectionOptions {
  /** Called on every connection error; the client reconnects. */
  readonly onError?: (error: Error) => void;
  /** A Unix socket of the one server at the URL, whose address is used where the socket fails. Default: the address. */
  readonly socketPath?: string | undefined;
  /** Options of TLS for `rediss://`, read for each connection. Default: those of Node. */
  readonly tls?: ConnectionOptions;
  /** Called if a server does not match the addresses, which no retry can fix. Default: ignored. */
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
  const withErrors = (redis: Redis): Redis =>
    watchReplies(redis.on('error', (error: Error) => options.onError?.(error)));
  if (others.length === 0) {
    const redis: Redis = withErrors(
      new Redis(first, {
        ...CONNECTION,
        ...(options.socketPath !== undefined && throughSocket(options.socketPath)),
        ...tlsOf(first, options),
        reconnectOnError: onReadOnly(() => redis),
      }),
    );
    redis.on('ready', async () => {
      const misfit = misfitOf(await describeServer(redis), 'standalone', redis.options.db);
      if (misfit !== null) options.onMisfit?.(misfit);
    });
    return new SingleRedis(redis);
  }
  const { protocol, username, password } = new URL(first);
  const cluster = new RedisCluster({
    seeds: [first, ...others].map(addressOf),
    preferHostnames: protocol === 'rediss:',
    open(host, port) {
      const redis = withErrors(
        new Redis({
          ...CONNECTION,
          host,
          port,
          ...(username !== '' && { username: decodeURIComponent(username) }),
          ...(password !== '' && { password: decodeURIComponent(password) }),
          ...tlsOf(first, options),
        }),
      );
      redis.on('ready', async () => {
        const misfit = misfitOf(await describeServer(redis), 'cluster');
        // Once the cluster is known, another server at the address of a node counts as a node that is away.
        if (misfit !== null && cluster.nodes().length === 0) options.onMisfit?.(misfit);
      });
      return redis;
    },
  });
  return cluster;
}

/** The addresses in a `REDIS_URL`. Several addresses are nodes of a cluster. */
function redisAddresses(url: string): string[] {
  return url
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** The object itself, whose members ioredis reads for each connection. */
function tlsOf(url: string, { tls = {} }: RedisConnectionOptions): { readonly tls?: ConnectionOptions } {
  return new URL(url).protocol === 'rediss:' ? { tls } : {};
}

function addressOf(url: string): string {
  const { hostname, port } = new URL(url);
  return `${hostname.replace(/^\[|\]$/g, '')}:${port === '' ? '6379' : port}`;
}

/**
 * The first three options belong together (measured with ioredis 6.0.0): by default, ioredis sends a command again if a
 * reconnection loses its reply, and a command that timed out is still executed. Writes must be absolute and guarded
 * anyway, because a command that timed out may have been executed.
 */
const CONNECTION = {
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  connectTimeout: 2_000,
  keepAlive: 5_000,
  retryStrategy: (attempt: number): number => backoffMs(attempt, { maxMs: 1_000 }),
};

/** So many attempts are made before the port is tried: a server that was killed is back meanwhile. */
const SOCKET_ATTEMPTS = 4;

/** With the port where the socket cannot be connected to, because its file was removed, or its file system only stores it. */
function throughSocket(path: string) {
  return {
    path,
    retryStrategy(this: { path: string }, attempt: number): number {
      this.path = attempt > SOCKET_ATTEMPTS && attempt % 2 === 1 ? '' : path;
      return CONNECTION.retryStrategy(attempt);
    },
  };
}

const REPLY_LOOK_MS = 500;
/** Looks after which a command fails that was sent before the first of them: within 1.5 to 2 seconds. */
const TIMEOUT_LOOKS = COMMAND_TIMEOUT_MS / REPLY_LOOK_MS;
/** Looks without a byte from a server that owes replies, after which it counts as away; more than `TIMEOUT_LOOKS`. */
const SILENT_LOOKS = 4;

/**
 * Bounds the time that a command waits for its reply. Replies come in the order of the commands, so one look serves all:
 * ioredis would start and stop a timer for each command, which is a tenth of what a command costs.
 *
 * A server that is paused, or behind a network that drops packets, keeps its connections, so that each access would wait for
 * its timeout. Its connection is closed, and commands fail at once until the server answers on another one.
 */
function watchReplies(redis: Redis): Redis {
  let received = 0;
  let looks = 0;
  /** The newest command at each of the last looks, the oldest look first. */
  const newest: (CommandItem | undefined)[] = [];
  const watch = setInterval(() => {
    const { status, stream, commandQueue } = redis;
    if (newest.length >= TIMEOUT_LOOKS) failUpTo(newest.shift(), commandQueue.toArray());
    newest.push(commandQueue.peekBack());
    const isSilent = status === 'ready' && commandQueue.length > 0 && stream.bytesRead === received;
    received = status === 'ready' ? stream.bytesRead : 0;
    looks = isSilent ? looks + 1 : 0;
    if (looks < SILENT_LOOKS) return;
    looks = 0;
    stream.destroy();
  }, REPLY_LOOK_MS).unref();
  return redis.once('end', () => clearInterval(watch));
}

type CommandItem = NonNullable<ReturnType<Redis['commandQueue']['peekBack']>>;

/** The commands stay in the queue, because their replies may still come. */
function failUpTo(last: CommandItem | undefined, waiting: readonly CommandItem[]): void {
  const count = last === undefined ? 0 : waiting.indexOf(last) + 1;
  for (const { command } of waiting.slice(0, count)) command.reject(new Error('Command timed out'));
}

/** Between two looks whether an address leads to another server. */
const LOOK_MS = 1_000;

/**
 * Follows a failover behind one address: a server that was demoted keeps its connections, and refuses writes on them.
 * Connects again if the address leads to a master by now; the server serves reads until then. The command that was
 * refused is not sent again.
 *
 * @returns a handler of errors for ioredis, which itself never asks for a reconnection
 */
function onReadOnly(connection: () => Redis): (error: Error) => boolean {
  let last = -Infinity;
  return ({ message }) => {
    const now = performance.now();
    if (message.startsWith('READONLY') && now - last >= LOOK_MS) {
      last = now;
      void leadsToMaster(connection()).then((isMaster) => isMaster && connection().disconnect(true));
    }
    return false;
  };
}

/** Never rejects. */
async function leadsToMaster(redis: Redis): Promise<boolean> {
  const look = redis.duplicate({
    lazyConnect: true,
    commandTimeout: COMMAND_TIMEOUT_MS,
    retryStrategy: () => null,
    reconnectOnError: () => false,
  });
  look.on('error', () => undefined);
  try {
    await look.connect();
    return /^role:master/m.test(await look.info('replication'));
  } catch {
    return false;
  } finally {
    look.disconnect();
  }
}

/** Resolves when all nodes are connected, or rejects with a fault after `timeoutMs`. */
export async function waitForRedis(redis: RedisClient, timeoutMs: number): Promise<void> {
  if (redis.isReady) return;
  const { promise: ready, resolve } = Promise.withResolvers<void>();
  const stopWaiting = redis.onReady(() => void (redis.isReady && resolve()));
  await within(timeoutMs, ready, () => storeUnavailable('Redis')).finally(stopWaiting);
}
