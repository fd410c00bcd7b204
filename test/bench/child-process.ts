/** Child processes for the measured work: started per run, each gets its task in one message and answers with one. */
import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { DEFAULT_NODE_FLAGS } from '#libs/platform/config/memory.ts';

const ROOT = join(import.meta.dirname, '../..');

export interface Child {
  readonly pid: number;
  /** Sends a task and returns the next message of the process. */
  ask<Answer>(task: object): Promise<Answer>;
  stop(): Promise<void>;
}

/** @param file relative to this folder */
export function startChild(file: string, { execArgv = [] as readonly string[] } = {}): Child {
  const child = fork(join(import.meta.dirname, file), [], {
    execArgv: [...execArgv],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    // Structured clone, which keeps typed arrays and bigints.
    serialization: 'advanced',
  });
  return {
    pid: child.pid ?? 0,
    async ask<Answer>(task: object): Promise<Answer> {
      const ended = new AbortController();
      const onExit = (code: number | null): void => ended.abort(new Error(`${file} ended with ${code}`));
      child.once('exit', onExit);
      child.send(task);
      try {
        const [answer] = await once(child, 'message', { signal: ended.signal });
        return answer as Answer;
      } catch {
        throw ended.signal.reason;
      } finally {
        child.off('exit', onExit);
      }
    },
    stop: () => end(child, 'SIGKILL'),
  };
}

/** Runs a task in a process of its own, from its start to its answer. */
export async function askOnce<Answer>(
  file: string,
  task: object,
  options?: { execArgv?: readonly string[] },
): Promise<Answer> {
  const child = startChild(file, options);
  try {
    return await child.ask<Answer>(task);
  } finally {
    await child.stop();
  }
}

/** In a process started by `startChild`: runs each task and answers with the result. */
export function answerTasks<Task, Answer>(work: (task: Task) => Promise<Answer>): void {
  process.on('message', (task) => {
    work(task as Task).then(
      (answer) => process.send?.(answer ?? {}),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  });
  process.once('disconnect', () => process.exit(1));
  // Exits normally, so that a profiler can write its profile.
  process.once('SIGINT', () => process.exit(0));
}

export interface Parley {
  readonly url: URL;
  readonly pid: number;
  stop(): Promise<void>;
}

/** The flags of `npm start`, see infra/set-up/start.mjs. */
export const NODE_FLAGS: readonly string[] = (process.env['PARLEY_NODE_FLAGS'] ?? DEFAULT_NODE_FLAGS)
  .split(/\s+/)
  .filter(Boolean);

export interface ParleyOptions {
  /** Further flags of Node. */
  readonly flags?: readonly string[];
  /** Further environment variables, such as `REDIS_URL`. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A full Parley as `npm start` runs it, on a data folder and a free port; without rate limits. */
export async function startParley(dataDir: string, apiKey: string, options: ParleyOptions = {}): Promise<Parley> {
  const flags = [...NODE_FLAGS, ...(options.flags ?? [])];
  const child = spawn(process.execPath, [...flags, join(ROOT, 'services/standalone/main.ts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      PARLEY_SUPERVISED: '',
      PORT: '0',
      HOST: '127.0.0.1',
      DATA_DIR: dataDir,
      PARLEY_BOOTSTRAP_KEY: apiKey,
      RATE_LIMIT_PER_KEY: '0',
      RATE_LIMIT_PER_ADDRESS: '0',
      LOG_LEVEL: 'error',
      ...options.env,
    },
  });
  let output = '';
  const url = await new Promise<URL>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      const found = /(http:\/\/\S+)\/api\/v1/.exec(output)?.[1];
      if (found !== undefined) resolve(new URL(found));
    });
    child.once('exit', (code) => reject(new Error(`Parley ended with ${code}\n${output}`)));
  });
  return { url, pid: child.pid ?? 0, stop: () => end(child, 'SIGTERM') };
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill(signal);
  await exit;
}

const TICKS_PER_SECOND = 100;

/** Runs `work` in this process; returns its rate, and the processor time of this process per unit. */
export async function timed(
  work: () => Promise<number>,
): Promise<{ readonly count: number; readonly rate: number; readonly cpuMicros: number }> {
  const cpu = process.cpuUsage();
  const started = performance.now();
  const count = await work();
  const seconds = (performance.now() - started) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  return { count, rate: count / seconds, cpuMicros: (user + system) / count };
}

/**
 * Processor time that processes have used so far, with their child processes, also those that have ended. In seconds;
 * `NaN` where the system does not report it (only Linux does).
 */
export async function cpuSecondsOf(...pids: readonly number[]): Promise<number> {
  const seconds = await Promise.all(pids.map(async (pid) => (await ticksOf(pid)) / TICKS_PER_SECOND));
  return seconds.reduce((sum, each) => sum + each, 0);
}

/** The same of one thread, by its file `stat`; 0 after its end. */
export async function cpuSecondsOfThread(file: string): Promise<number> {
  const [user = 0, system = 0] = await timesIn(file);
  return (user + system) / TICKS_PER_SECOND;
}

/** Ticks of user and system time of a process or thread, then of the child processes that have ended. */
async function timesIn(file: string): Promise<number[]> {
  const stat = await readFile(file, 'utf8').catch(() => '');
  // After the name, which may contain blanks: the 12th to 15th field.
  return stat === ''
    ? []
    : stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ')
        .slice(11, 15)
        .map(Number);
}

async function ticksOf(pid: number): Promise<number> {
  const times = await timesIn(`/proc/${pid}/stat`);
  if (times.length === 0) return Number.NaN;
  const own = times.reduce((sum, ticks) => sum + ticks, 0);
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  const below = await Promise.all(children.split(' ').filter(Boolean).map(Number).map(ticksOf));
  // One that has ended since is among those of its parent the next time.
  return below.filter((ticks) => !Number.isNaN(ticks)).reduce((sum, ticks) => sum + ticks, own);
}
