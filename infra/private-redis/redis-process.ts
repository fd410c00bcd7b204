/**
 * One `redis-server` child process on a loopback port. It reads its configuration from stdin, so the password is neither
 * in the process list nor in a file. A watcher process ends Redis when this process is killed (`kill -9`): the watcher's
 * stdin is a pipe from this process, which the kernel then closes.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { pingRedis } from './ping.ts';

const COMMAND = 'redis-server';
/** Redis loads its data before it answers. */
const READY_TIMEOUT_MS = 60_000;
const GRACE_MS = 5_000;
/** Signals of a crash. */
const CRASHES = new Set<NodeJS.Signals | null>(['SIGSEGV', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL']);

export interface RedisProcessOptions {
  /** An existing folder for Redis' data and log. */
  readonly dataDir: string;
  readonly port: number;
  /** Default: no password. */
  readonly password?: string;
  /** Further lines of redis.conf, e.g. `['maxmemory 64mb']`. Each wins over the defaults. */
  readonly extraConfig?: readonly string[];
  /** Aborts the start and ends the process. */
  readonly signal?: AbortSignal | undefined;
}

export interface RedisProcess {
  readonly pid: number;
  readonly port: number;
  readonly url: string;
  /** Resolves when the process has ended; never rejects. */
  readonly exited: Promise<void>;
  kill(signal: NodeJS.Signals): void;
  /** Ends Redis with SIGTERM, which saves its data, and after five seconds with SIGKILL. */
  stop(): Promise<void>;
}

/**
 * Starts Redis and resolves once it answers PING.
 *
 * @throws RedisStartError with the output of Redis if it exits or does not answer; the reason of the signal
 */
export async function startRedisProcess(options: RedisProcessOptions): Promise<RedisProcess> {
  const { dataDir, port, password, signal } = options;
  const child = spawn(COMMAND, ['-'], {
    cwd: dataDir,
    stdio: ['pipe', 'pipe', 'pipe'],
    // A separate process group: Ctrl-C in a terminal must not end Redis, which is stopped last.
    detached: true,
  });
  const output = collectOutput(child);
  const exited = new Promise<void>((resolve) => {
    child.once('close', () => resolve());
    child.once('error', () => resolve());
  });
  child.stdin.on('error', () => undefined);
  child.stdin.end(redisConfig(options));
  if (child.pid === undefined) {
    await exited;
    throw new RedisStartError(`${COMMAND} could not be started: ${output()}`, { notFound: true });
  }
  const pid = child.pid;
  endWithUs(pid, exited);

  let gone = false;
  void exited.then(() => (gone = true));
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (!(await pingRedis({ port, ...(password === undefined ? {} : { password }) }))) {
    if (gone) {
      const how = child.exitCode === null ? `by ${child.signalCode}` : 'at once';
      // SIGKILL, for example when memory is exhausted, says nothing about the data. A crash does.
      const ended = child.exitCode !== null || CRASHES.has(child.signalCode);
      throw new RedisStartError(`${COMMAND} ended ${how}: ${output()}`, { ended });
    }
    if (signal?.aborted === true) {
      child.kill('SIGKILL');
      await exited;
      throw signal.reason;
    }
    if (Date.now() > deadline) {
      child.kill('SIGKILL');
      throw new RedisStartError(`${COMMAND} did not answer within ${READY_TIMEOUT_MS} ms`);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return {
    pid,
    port,
    url: `redis://${password === undefined ? '' : `:${password}@`}127.0.0.1:${port}`,
    exited,
    kill: (signal) => void child.kill(signal),
    async stop() {
      child.kill('SIGTERM');
      // A paused process (SIGSTOP) handles SIGTERM only after it continues.
      child.kill('SIGCONT');
      const force = setTimeout(() => child.kill('SIGKILL'), GRACE_MS);
      await exited;
      clearTimeout(force);
    },
  };
}

export class RedisStartError extends Error {
  override readonly name = 'RedisStartError';
  /** The PATH has no such command. */
  readonly notFound: boolean;
  /** The server exited or crashed before it answered. */
  readonly ended: boolean;

  constructor(message: string, { notFound = false, ended = false }: { notFound?: boolean; ended?: boolean } = {}) {
    super(message);
    this.notFound = notFound;
    this.ended = ended;
  }
}

function redisConfig({ dataDir, port, password, extraConfig = [] }: RedisProcessOptions): string {
  return [
    'bind 127.0.0.1',
    `port ${port}`,
    `dir ${JSON.stringify(dataDir)}`,
    'daemonize no',
    // The data can be rebuilt from the log: losing a second of it is cheap, an fsync per write is not.
    'appendonly yes',
    'appendfsync everysec',
    'save ""',
    // With eviction the read models would silently lose keys; when writes are refused the projector waits.
    'maxmemory-policy noeviction',
    // Where the system's memory ends, it ends the child that rewrites the file, or else Redis, and not Parley: both start
    // again, and Parley serves meanwhile. A process may always make itself the likelier one.
    'oom-score-adj yes',
    'oom-score-adj-values 800 800 1000',
    'loglevel notice',
    ...(password === undefined ? ['protected-mode yes'] : [`requirepass ${password}`]),
    ...extraConfig,
    '',
  ].join('\n');
}

/** Keeps the last lines of Redis' output, for the error if the start fails. */
function collectOutput(child: ChildProcess): () => string {
  let tail = '';
  const keep = (chunk: Buffer | string): void => {
    tail = (tail + String(chunk)).slice(-2_000);
  };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  child.once('error', (error) => keep(error.message));
  return () => tail.trim().split('\n').slice(-3).join(' | ') || 'it printed nothing';
}

function endWithUs(pid: number, exited: Promise<void>): void {
  const watcher = spawn(
    '/bin/sh',
    ['-c', 'read -r _; kill -CONT "$1"; kill -TERM "$1"', 'parley-redis-watcher', `${pid}`],
    {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    },
  );
  watcher.on('error', () => undefined);
  watcher.stdin.on('error', () => undefined);
  watcher.unref();
  // Ends before its Redis is reaped, so that it never signals another process with the same id.
  void exited.then(() => watcher.kill('SIGKILL'));
}
