/**
 * One `redis-server` child process on a loopback port. The configuration goes in through stdin, so the
 * password stands neither in the process list nor in a file. A small watcher ends Redis when this
 * process dies without a word (`kill -9`): its stdin is a pipe from us, which the kernel then closes.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { pingRedis } from './ping.ts';

/** Signals of a process that fails at what it does. */
const CRASHES = new Set<NodeJS.Signals | null>(['SIGSEGV', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL']);

export interface RedisProcessOptions {
  /** An existing folder; becomes Redis' working folder, its data and its log live there. */
  readonly dataDir: string;
  readonly port: number;
  /** Default: no password. */
  readonly password?: string;
  /** Further lines of redis.conf, e.g. `['maxmemory 64mb']`. Each wins over the defaults. */
  readonly extraConfig?: readonly string[];
  /** Default: `redis-server` of the PATH. */
  readonly command?: string;
  /** Redis loads its data before it answers; a big append-only file takes a while. Default 60,000. */
  readonly readyTimeoutMs?: number;
  /** Gives up the start: the process is ended. */
  readonly signal?: AbortSignal | undefined;
}

export interface RedisProcess {
  readonly pid: number;
  readonly port: number;
  readonly url: string;
  /** Resolves, never rejects, when the process is gone, however it ended. */
  readonly exited: Promise<void>;
  kill(signal: NodeJS.Signals): void;
  /** Ends Redis with a last save (SIGTERM), after `graceMs` without it (SIGKILL). Default 5,000. */
  stop(graceMs?: number): Promise<void>;
}

/**
 * Starts Redis and resolves once it answers PING.
 *
 * @throws RedisStartError when it ends or stays silent, with the reason as Redis gave it; the reason of the signal
 */
export async function startRedisProcess(options: RedisProcessOptions): Promise<RedisProcess> {
  const { dataDir, port, password, command = 'redis-server', readyTimeoutMs = 60_000, signal } = options;
  const child = spawn(command, ['-'], {
    cwd: dataDir,
    stdio: ['pipe', 'pipe', 'pipe'],
    // A group of its own: Ctrl-C in a terminal must reach us, not Redis, which we stop last.
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
    throw new RedisStartError(`${command} could not be started: ${output()}`, { notFound: true });
  }
  const pid = child.pid;
  endWithUs(pid, exited);

  let gone = false;
  void exited.then(() => (gone = true));
  const deadline = Date.now() + readyTimeoutMs;
  while (!(await pingRedis({ port, ...(password === undefined ? {} : { password }) }))) {
    if (gone) {
      const how = child.exitCode === null ? `by ${child.signalCode}` : 'at once';
      // A SIGKILL, such as the kernel's for want of memory, says nothing about the data. A crash does.
      const ended = child.exitCode !== null || CRASHES.has(child.signalCode);
      throw new RedisStartError(`${command} ended ${how}: ${output()}`, { ended });
    }
    if (signal?.aborted === true) {
      child.kill('SIGKILL');
      await exited;
      throw signal.reason;
    }
    if (Date.now() > deadline) {
      child.kill('SIGKILL');
      throw new RedisStartError(`${command} did not answer within ${readyTimeoutMs} ms`);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return {
    pid,
    port,
    url: `redis://${password === undefined ? '' : `:${password}@`}127.0.0.1:${port}`,
    exited,
    kill: (signal) => void child.kill(signal),
    async stop(graceMs = 5_000) {
      child.kill('SIGTERM');
      // A stopped process (SIGSTOP) takes no SIGTERM before it goes on.
      child.kill('SIGCONT');
      const force = setTimeout(() => child.kill('SIGKILL'), graceMs);
      await exited;
      clearTimeout(force);
    },
  };
}

export class RedisStartError extends Error {
  override readonly name = 'RedisStartError';
  /** There is no such command on the PATH. */
  readonly notFound: boolean;
  /** The server ran, and ended by itself before it answered: it exited or crashed. */
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
    // Everything in it can be folded again from the log: losing a second is cheap, an fsync per write is not.
    'appendonly yes',
    'appendfsync everysec',
    'save ""',
    // A read model that silently loses keys would be wrong; one that refuses writes makes the projector wait.
    'maxmemory-policy noeviction',
    'loglevel notice',
    ...(password === undefined ? ['protected-mode yes'] : [`requirepass ${password}`]),
    ...extraConfig,
    '',
  ].join('\n');
}

/** Keeps the last lines that Redis printed, for the message when it does not come up. */
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

/** Ends process `pid` when our own process ends in a way that leaves us no time to do it. */
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
  // Gone before its Redis is reaped: it must never signal a process that got the same pid later.
  void exited.then(() => watcher.kill('SIGKILL'));
}
