/**
 * The private Redis of a standalone Parley: the `redis-server` of the PATH on a free loopback port and a Unix socket, with a
 * random password and its data in the data folder. It is restarted when it dies, serves from memory while the disk is full, and ends with
 * this process. A Redis of the system is never used.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import {
  pause,
  backoffMs,
  startBackgroundJob,
  StartRefusal,
  unlessAborted,
  type LifecycleLog,
} from '#libs/platform/lifecycle/index.ts';
import { redisMemory } from '#libs/platform/config/index.ts';
import { freePort } from './free-port.ts';
import { serveOnFullDisk } from './full-disk.ts';
import { endOrphans } from './orphans.ts';
import { startWithoutData } from './discarded-data.ts';
import { RedisStartError, startRedisProcess, type RedisProcess } from './redis-process.ts';

export interface PrivateRedisOptions {
  /** Created if absent. The caller holds the lock of the data folder. */
  readonly dataDir: string;
  readonly log: LifecycleLog;
  /** Aborts the start. */
  readonly signal?: AbortSignal;
}

export interface PrivateRedis {
  /** `redis://:PASSWORD@127.0.0.1:PORT`, constant for the lifetime of this process. */
  readonly url: string;
  /**
   * A Unix socket of the same server, which takes less processor time than the loopback interface. Undefined where the file system
   * has no sockets, or the path is too long for one.
   */
  readonly socketPath: string | undefined;
  /** Process id of the current server. */
  readonly pid: number;
  stop(): Promise<void>;
}

/** In the folder of the data, which is Redis' working folder. */
const SOCKET = 'redis.sock';
const LOG_FILE = 'redis.log';
const LOG_FILE_LIMIT_BYTES = 4 * 1024 * 1024;

/**
 * Starts Redis and resolves once it answers.
 *
 * @throws StartRefusal if the PATH has no Redis, or Redis exits at once; the reason of the signal
 */
export async function startPrivateRedis({ dataDir, log, signal }: PrivateRedisOptions): Promise<PrivateRedis> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  await makeRoomForLog(join(dataDir, LOG_FILE));
  const password = randomBytes(24).toString('hex');
  const hasSocket = await mayHaveSocket(dataDir);

  async function start(port: number, giveUp?: AbortSignal): Promise<RedisProcess> {
    const orphans = await endOrphans(dataDir);
    if (orphans.length > 0) log.warn({ pids: orphans }, 'ended a Redis that an earlier Parley left behind');
    const most = redisMemory();
    const extraConfig = [
      `logfile ${LOG_FILE}`,
      ...(most === undefined ? [] : [`maxmemory ${most}`]),
      ...(hasSocket ? [`unixsocket ${SOCKET}`, 'unixsocketperm 700'] : []),
    ];
    const startHere = (): Promise<RedisProcess> =>
      startRedisProcess({ dataDir, port, password, extraConfig, signal: giveUp });
    try {
      return await startHere();
    } catch (error) {
      if (!(error instanceof RedisStartError) || !error.ended) throw error;
      return startWithoutData(dataDir, log, error, startHere);
    }
  }

  let redis = await startOnFreePort((port) => start(port, signal), dataDir);
  const supervision = startBackgroundJob({
    name: 'private redis',
    log,
    async run(signal) {
      for (let deaths = 0; ;) {
        const startedAt = performance.now();
        await unlessAborted(redis.exited, signal);
        deaths = performance.now() - startedAt > 30_000 ? 1 : deaths + 1;
        log.error({ pid: redis.pid }, 'the private Redis has died; starting it again');
        await pause(deaths === 1 ? 0 : backoffMs(deaths), signal);
        // The job logs a failure, pauses and calls this again.
        redis = await start(redis.port);
      }
    },
  });

  const { port } = redis;
  const saving = serveOnFullDisk({ port, password }, dataDir, log);

  return {
    url: redis.url,
    socketPath: hasSocket ? join(dataDir, SOCKET) : undefined,
    get pid() {
      return redis.pid;
    },
    async stop() {
      await Promise.all([supervision.stop(), saving.stop()]);
      await redis.stop();
    },
  };
}

/** Tries it with a longer path: Redis ends itself where it cannot listen, or cannot remove the socket of a Redis that was killed. */
async function mayHaveSocket(folder: string): Promise<boolean> {
  const path = join(folder, `${SOCKET}.try`);
  const server = createServer();
  const listened = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(path, () => server.close(() => resolve(true)));
  });
  await rm(path, { force: true }).catch(() => undefined);
  return listened && (await stat(path).catch(() => null)) === null;
}

async function startOnFreePort(start: (port: number) => Promise<RedisProcess>, dataDir: string): Promise<RedisProcess> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(await freePort());
    } catch (error) {
      if (!(error instanceof RedisStartError)) throw error;
      if (error.notFound) {
        throw new StartRefusal(
          'redis-server is not on the PATH: install Redis 7 or newer (apt-get install redis-server, brew install redis, …), or set REDIS_URL',
        );
      }
      if (attempt < 3) continue;
      const why = (await lastLine(join(dataDir, LOG_FILE))) ?? error.message;
      throw new StartRefusal(`the private Redis does not start (${join(dataDir, LOG_FILE)}): ${why}`);
    }
  }
}

/** Redis only appends to its log file: one previous file is kept. */
async function makeRoomForLog(file: string): Promise<void> {
  const { size } = await stat(file).catch(() => ({ size: 0 }));
  if (size > LOG_FILE_LIMIT_BYTES) await rename(file, `${file}.1`);
}

async function lastLine(file: string): Promise<string | undefined> {
  const handle = await open(file).catch(() => undefined);
  if (handle === undefined) return undefined;
  try {
    const { size } = await handle.stat();
    const start = Math.max(0, size - 4_096);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(4_096), 0, 4_096, start);
    return buffer.toString('utf8', 0, bytesRead).trim().split('\n').at(-1)?.trim() || undefined;
  } finally {
    await handle.close();
  }
}
