/** Parley as a process, as users run it, with ways to make it fail. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { freePort } from '#infra/private-redis/free-port.ts';
import { createApiKey } from '#libs/platform/http/index.ts';
import type { RoleName } from '#services/roles.ts';
import { ApiClient } from './api-client.ts';
import { COMPILE_CACHE } from './child-process.ts';
import { eventually } from './eventually.ts';

export interface ParleyProcess {
  /** `http://127.0.0.1:PORT`; a restart keeps it. */
  readonly baseUrl: string;
  readonly port: number;
  /** Key of the first organization. */
  readonly apiKey: string;
  /** Working directory; a process of one role must leave it empty. */
  readonly dataDir: string;
  readonly pid: number;
  /** Output of all its starts. */
  output(): string;
  /** A client with the key; `stop` closes it. */
  readonly api: ApiClient;
  /** Whether the process runs. */
  alive(): boolean;
  /** `kill -9`; resolves when the process has exited. `start` uses the same data. */
  kill9(): Promise<void>;
  /** SIGSTOP: connections stay open, nothing answers. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
  /** Starts it again on the same port and data. Resolves when it listens, or at once without `wait`. */
  start(options?: { readonly wait?: boolean }): Promise<void>;
  /** SIGTERM and another start. Resolves when it listens. */
  restart(): Promise<void>;
  /** Resolves when `/health/ready` answers 200. */
  ready(): Promise<void>;
  /** Sends a signal and does not wait. */
  signal(name: NodeJS.Signals): void;
  /** Resolves when the process has exited. @returns its exit code, null if a signal ended it */
  ended(): Promise<number | null>;
  /** SIGTERM; keeps its data for `start`. */
  halt(): Promise<void>;
  /** SIGTERM; removes its data. @returns the exit code, null if it had to be killed */
  stop(): Promise<number | null>;
}

export interface ParleyProcessOptions {
  /** Runs `parley <role>` instead of `standalone`; needs the URLs of both stores. */
  readonly role?: RoleName;
  readonly eventstoreUrl?: string;
  readonly redisUrl?: string;
  readonly apiKey?: string;
  /** Further environment variables. Rate limits are off by default. */
  readonly env?: Readonly<Record<string, string>>;
  /** Default: wait until it listens. */
  readonly wait?: boolean;
}

const MAIN = resolve(import.meta.dirname, '../../services/standalone/main.ts');
const COMMAND = resolve(import.meta.dirname, '../../services/cli/main.ts');
/** The nodes of a test share it. */
export const TOKEN_SECRET = 'a secret that the gateways of a test share';
const STOP_MS = 15_000;
/** An idle machine takes a second; a dozen starts at once on a busy machine took 90 seconds. */
const START_MS = 180_000;

/** Starts Parley in a new folder; stores without a URL are embedded. */
export async function startParleyProcess(options: ParleyProcessOptions = {}): Promise<ParleyProcess> {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-test-process-'));
  const port = await freePort();
  const baseUrl = `http://127.0.0.1:${port}`;
  const apiKey = options.apiKey ?? createApiKey();
  const api = new ApiClient(baseUrl, apiKey);
  const place = options.role === undefined ? { DATA_DIR: dataDir } : {};
  const env = environmentOf(options, { PORT: String(port), ...place, PARLEY_BOOTSTRAP_KEY: apiKey });
  const command = options.role === undefined ? [MAIN] : [COMMAND, options.role];
  let output = '';
  let child: ChildProcess;

  function launch(): void {
    child = spawn(process.execPath, command, { cwd: dataDir, env, stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout?.on('data', (chunk) => (output += String(chunk)));
    child.stderr?.on('data', (chunk) => (output += String(chunk)));
  }
  const alive = (): boolean => child.exitCode === null && child.signalCode === null;

  async function start({ wait = true }: { readonly wait?: boolean } = {}): Promise<void> {
    launch();
    if (wait) await eventually(async () => !alive() || (await listening()), { timeoutMs: START_MS, everyMs: 50 });
    if (wait && !alive()) {
      throw new Error(`Parley ended (${child.exitCode ?? child.signalCode}):\n${output.slice(-3_000)}`);
    }
  }
  /** While a start waits for its store, another server answers, by the check `start`, and 503 to all requests of the API. */
  async function listening(): Promise<boolean> {
    const { checks } = (await api.get('/health/ready', { timeoutMs: 3_000 })).json() as { checks: object };
    return !('start' in checks);
  }

  const parley: ParleyProcess = {
    baseUrl,
    port,
    apiKey,
    dataDir,
    api,
    get pid() {
      return child.pid ?? 0;
    },
    output: () => output,
    alive,
    kill9: () => end(child, 'SIGKILL'),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    start,
    halt: () => terminate(child),
    async restart() {
      await terminate(child);
      await start();
    },
    signal: (name) => void child.kill(name),
    async ended() {
      if (alive()) await once(child, 'exit');
      return child.exitCode;
    },
    async ready() {
      await eventually(
        async () => {
          const { status, text } = await api.get('/health/ready', { timeoutMs: 3_000 });
          if (status !== 200) throw new Error(`not ready: ${text}`);
        },
        { timeoutMs: START_MS, everyMs: 50 },
      );
    },
    async stop() {
      api.close();
      await terminate(child);
      await rm(dataDir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
      return child.exitCode;
    },
  };
  try {
    await start(options.wait === undefined ? {} : { wait: options.wait });
  } catch (error) {
    await parley.stop();
    throw error;
  }
  return parley;
}

/** Leaves out the environment of the test runner, which would change how the process behaves. */
function environmentOf(options: ParleyProcessOptions, own: Record<string, string>): Record<string, string> {
  const { PATH = '', HOME = '' } = process.env;
  return {
    PATH,
    HOME,
    NODE_COMPILE_CACHE: COMPILE_CACHE,
    LOG_LEVEL: 'warn',
    RATE_LIMIT_PER_KEY: '0',
    RATE_LIMIT_PER_ADDRESS: '0',
    PARLEY_TOKEN_SECRET: TOKEN_SECRET,
    ...own,
    ...(options.eventstoreUrl !== undefined && { EVENTSTORE_URL: options.eventstoreUrl }),
    ...(options.redisUrl !== undefined && { REDIS_URL: options.redisUrl }),
    ...options.env,
  };
}

async function terminate(child: ChildProcess): Promise<void> {
  child.kill('SIGCONT');
  const force = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await end(child, 'SIGTERM').finally(() => clearTimeout(force));
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill(signal);
  await exit;
}
