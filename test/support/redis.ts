/**
 * A Redis for one test file, with ways to make it fail: a container or a native process, whose port and data survive
 * restarts. Tests that only use Redis get the server of `REDIS_URL` where it is set.
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { startRedisProcess, type RedisProcess, type RedisProcessOptions } from '#infra/private-redis/redis-process.ts';
import type { TestRedisCluster } from './redis-cluster.ts';
import { onFreePort } from './on-free-port.ts';
import { chooseStore } from './stores/choice.ts';
import { borrowNamedRedis } from './stores/named-redis.ts';

/** Empty at the start, and used by one test file at a time. */
export interface EmptyRedis {
  /** Local servers have a password: a client of another test that finds one on a reused port is refused. */
  readonly url: string;
  /** Removes its data, and ends the server unless `REDIS_URL` names it. */
  stop(): Promise<void>;
}

export interface TestRedis extends EmptyRedis {
  /** `kill -9`; resolves when the process has exited. `restart` uses the same data. */
  kill9(): Promise<void>;
  /** Freezes it: connections stay open, requests get no answer. */
  pause(): Promise<void>;
  /** Ends `pause`; does nothing if it was not paused. */
  resume(): Promise<void>;
  /** Sends one command on a new connection, e.g. `['CONFIG', 'SET', 'maxmemory', '1']`. */
  command(...words: readonly [string, ...string[]]): Promise<unknown>;
  /** Stops it if it runs, and starts it again on the same port and data. */
  restart(): Promise<void>;
}

export interface TestRedisOptions {
  /** Further lines of redis.conf, e.g. `['maxmemory 8mb']`. */
  readonly config?: readonly string[];
}

/** The server of `REDIS_URL`, emptied, else a new one. */
export async function startEmptyRedis(): Promise<EmptyRedis> {
  return (await borrowNamedRedis()) ?? startTestRedis();
}

/** Always a new server, for tests that kill, pause or configure it. */
export async function startTestRedis({ config = [] }: TestRedisOptions = {}): Promise<TestRedis> {
  if (process.env['PARLEY_TEST_REDIS'] === 'cluster') {
    const { startTestRedisCluster } = await import('./redis-cluster.ts');
    return clusterAsOne(await startTestRedisCluster());
  }
  const choice = await chooseStore('redis');
  return choice.from === 'container' ? startInContainer(choice.image, config) : startNative(config);
}

async function startInContainer(image: string, config: readonly string[]): Promise<TestRedis> {
  // Loads testcontainers, which takes a second that native runs need not spend.
  const { startStoreContainer } = await import('./stores/container.ts');
  const password = randomBytes(12).toString('hex');
  const urlOf = (host: string, port: number): string => `redis://:${password}@${host}:${port}`;
  const lines = ['appendonly yes', 'save ""', `requirepass ${password}`, 'dir /data', ...config];
  const container = await startStoreContainer({
    image,
    innerPort: 6379,
    command: ['redis-server', ...lines.flatMap(asOption)],
    probe: ({ host, port }) => ping(urlOf(host, port)),
  });
  const url = urlOf(container.host, container.port);
  return { ...container, url, command: (name, ...words) => once(url, (client) => client.call(name, ...words)) };
}

/** `maxmemory 8mb` as `--maxmemory 8mb`. */
function asOption(line: string): string[] {
  const [name = '', ...values] = line.split(' ');
  return [`--${name}`, ...values.map((value) => (value === '""' ? '' : value))];
}

async function startNative(extraConfig: readonly string[]): Promise<TestRedis> {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-test-redis-'));
  const password = randomBytes(12).toString('hex');
  let redis = await startOnFreePort({ dataDir, password, extraConfig });
  const { url, port } = redis;
  return {
    url,
    async stop() {
      redis.kill('SIGKILL');
      await redis.exited;
      await rm(dataDir, { recursive: true, force: true });
    },
    async kill9() {
      redis.kill('SIGKILL');
      await redis.exited;
    },
    pause: async () => redis.kill('SIGSTOP'),
    resume: async () => redis.kill('SIGCONT'),
    command: (name, ...words) => once(url, (client) => client.call(name, ...words)),
    async restart() {
      await redis.stop();
      redis = await startRedisProcess({ dataDir, port, password, extraConfig });
    },
  };
}

async function ping(url: string): Promise<void> {
  await once(url, (client) => client.ping());
}

async function once<T>(url: string, call: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { maxRetriesPerRequest: 1 });
  // The call rejects with the error.
  client.on('error', () => undefined);
  try {
    return await call(client);
  } finally {
    client.disconnect();
  }
}

function startOnFreePort(options: Omit<RedisProcessOptions, 'port'>): Promise<RedisProcess> {
  return onFreePort((port) => startRedisProcess({ ...options, port }));
}

/** Commands that are sent to every node. */
const FOR_ALL = new Set(['FLUSHALL', 'CONFIG', 'CLIENT', 'KEYS']);

/** The cluster with the interface of a single server: all nodes are killed, paused and restarted together. */
function clusterAsOne(cluster: TestRedisCluster): TestRedis {
  const all = [...cluster.masters, ...cluster.replicas];
  return {
    url: cluster.url,
    stop: () => cluster.stop(),
    kill9: async () => void (await Promise.all(all.map((node) => node.kill9()))),
    pause: async () => all.forEach((node) => node.pause()),
    resume: async () => all.forEach((node) => node.resume()),
    restart: async () => void (await Promise.all(all.map((node) => node.restart()))),
    async command(name, ...words) {
      if (FOR_ALL.has(name)) {
        const replies = await Promise.all(cluster.masters.map((node) => node.command(name, ...words)));
        return name === 'KEYS' ? replies.flat() : replies[0];
      }
      // `PUBSUB SHARDNUMSUB topic`, `GET key`, `HSET key field value`.
      return cluster.masterOf((name === 'PUBSUB' ? words[1] : words[0]) ?? '').command(name, ...words);
    },
  };
}
