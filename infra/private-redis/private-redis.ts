/**
 * The private Redis of a standalone Parley: the `redis-server` of the PATH on a free loopback port and a Unix socket, with a
 * random password and its data in the data folder. It is restarted when it dies, serves from memory while the disk is full, and ends with
 * this process. A Redis of the system is never used.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat, statfs } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import {
  pause,
  backoffMs,
  startBackgroundJob,
  StartRefusal,
  unlessAborted,
  type LifecycleLog,
  type BackgroundJob,
} from '#libs/platform/lifecycle/index.ts';
import { redisMemory } from '#libs/platform/config/index.ts';
import { freePort } from './free-port.ts';
import { endOrphans } from './orphans.ts';
import { RedisStartError, startRedisProcess, type RedisProcess } from './redis-process.ts';
import { askRedis, type RedisAddress } from './ping.ts';

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

const CHECK_MS = 1_000;
/** Redis writes all of its data anew when it begins to save again. */
const ROOM_BYTES = 16 * 1024 * 1024;

/**
 * Lets Redis serve from memory while its disk is full. A Redis that cannot save refuses all writes and even PING, and so
 * tickets of websockets, although all of its data can be rebuilt from the log. It saves again once there is room. If it
 * dies meanwhile, it continues with the older data, which the read models' revisions and checkpoints bring up to date.
 */
function serveOnFullDisk(redis: RedisAddress, dataDir: string, log: LifecycleLog): BackgroundJob {
  let saves = true;
  return startBackgroundJob({
    name: 'private redis on a full disk',
    log,
    async run(signal) {
      while (!signal.aborted) {
        await pause(CHECK_MS, signal);
        const refusal = await askRedis(redis, 'PING');
        if (refusal?.startsWith('-MISCONF')) {
          saves = (await askRedis(redis, 'CONFIG SET appendonly no')) !== '+OK';
          log.error({ reason: refusal, dataDir }, 'the private Redis cannot save its data, and serves it from memory');
        } else if (!saves && (await hasRoom(dataDir))) {
          saves = (await askRedis(redis, 'CONFIG SET appendonly yes')) === '+OK';
          if (saves) log.info({ dataDir }, 'the private Redis saves its data again');
        }
      }
    },
  });
}

async function hasRoom(folder: string): Promise<boolean> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize >= ROOM_BYTES;
}

/** Redis' append-only files, and a snapshot that another configuration left. */
const DATA = new Set(['appendonlydir', 'dump.rdb']);
const ASIDE = '.aside';

/**
 * Starts Redis without its data, after it ended on them. If that succeeds, its files are damaged and are removed. The
 * read models in them are rebuilt from the log. Lost are the replies stored under Idempotency-Keys, drafts, and the event
 * that the start compares the log with. If it fails, the files are not the cause and are kept.
 *
 * @param error of the start with the data, thrown again if the start without them fails
 */
async function startWithoutData(
  dataDir: string,
  log: LifecycleLog,
  error: RedisStartError,
  start: () => Promise<RedisProcess>,
): Promise<RedisProcess> {
  const found = (await readdir(dataDir)).filter((name) => DATA.has(name));
  if (found.length === 0) throw error;
  for (const name of found) {
    // A process was killed between the two starts.
    await rm(join(dataDir, `${name}${ASIDE}`), { recursive: true, force: true });
    await rename(join(dataDir, name), join(dataDir, `${name}${ASIDE}`));
  }
  let redis: RedisProcess;
  try {
    redis = await start();
  } catch {
    for (const name of found) {
      await rm(join(dataDir, name), { recursive: true, force: true });
      await rename(join(dataDir, `${name}${ASIDE}`), join(dataDir, name));
    }
    throw error;
  }
  log.warn(
    { err: error, files: found },
    'discarded damaged files of the private Redis: the read models are rebuilt from the log; replies stored under ' +
      'Idempotency-Keys and drafts are lost, and this start cannot notice that the log lacks events',
  );
  for (const name of found) await rm(join(dataDir, `${name}${ASIDE}`), { recursive: true, force: true });
  return redis;
}
