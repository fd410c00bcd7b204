/** A Redis of its own for a test: free port, temporary folder, and the ways in which a Redis can fail. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from '#infra/private-redis/free-port.ts';
import { startRedisProcess, type RedisProcess, type RedisProcessOptions } from '#infra/private-redis/redis-process.ts';

export interface TestRedis {
  /** With a password, so that no test mistakes another Redis on a reused port for its own. */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Ends it and removes its data. */
  stop(): Promise<void>;
  /** `kill -9`; resolves when the process is gone. The data stays, `restart` uses it again. */
  kill9(): Promise<void>;
  /** SIGSTOP: connections stay open, nothing answers. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
  /** One command on a connection of its own, e.g. `['CONFIG', 'SET', 'maxmemory', '1']`. */
  command(...words: readonly [string, ...string[]]): Promise<unknown>;
  /** Starts it again on the same port and data, after it was killed, or after stopping it. */
  restart(): Promise<void>;
}

/** @param options.config further lines of redis.conf, e.g. `['maxmemory 8mb']` */
export async function startTestRedis(options: { config?: readonly string[] } = {}): Promise<TestRedis> {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-test-redis-'));
  const extraConfig = options.config ?? [];
  const password = randomBytes(12).toString('hex');
  let redis = await startOnFreePort({ dataDir, password, extraConfig });
  const { url, port } = redis;
  return {
    url,
    port,
    get pid() {
      return redis.pid;
    },
    async stop() {
      redis.kill('SIGKILL');
      await redis.exited;
      await rm(dataDir, { recursive: true, force: true });
    },
    async kill9() {
      redis.kill('SIGKILL');
      await redis.exited;
    },
    pause: () => redis.kill('SIGSTOP'),
    resume: () => redis.kill('SIGCONT'),
    command: (name, ...words) => once(url, (client) => client.call(name, ...words)),
    async restart() {
      await redis.stop();
      redis = await startRedisProcess({ dataDir, port, password, extraConfig });
    },
  };
}

async function once<T>(url: string, call: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { maxRetriesPerRequest: 1 });
  try {
    return await call(client);
  } finally {
    client.disconnect();
  }
}

/** Another process may take the free port first: then try the next one. */
async function startOnFreePort(options: Omit<RedisProcessOptions, 'port'>): Promise<RedisProcess> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startRedisProcess({ ...options, port: await freePort() });
    } catch (error) {
      if (attempt === 5) throw error;
    }
  }
}
