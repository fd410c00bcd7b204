/** An embedded event store of its own for a test, and the ways in which an event store can fail. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEventStoreWorker } from '#infra/embedded-eventstore/index.ts';
import { freePort } from '#infra/private-redis/free-port.ts';

export interface TestEventStore {
  /** `esdb://127.0.0.1:PORT?tls=false`, the same after a restart. */
  readonly url: string;
  readonly port: number;
  /** Ends it and removes its data. */
  stop(): Promise<void>;
  /** Stops it cleanly if it runs, and starts it again on the same port and data. */
  restart(): Promise<void>;
}

export interface TestEventStoreProcess extends TestEventStore {
  readonly pid: number;
  /** `kill -9`; resolves when the process is gone. The data stays, `restart` uses it again. */
  kill9(): Promise<void>;
  /** SIGSTOP: connections stay open, nothing answers. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
}

/**
 * `inline` runs in a worker thread of the test (quick to start); `process` in a process of its own,
 * which alone can be killed and paused.
 */
export async function startTestEventStore(options: { mode: 'process' }): Promise<TestEventStoreProcess>;
export async function startTestEventStore(options?: { mode: 'inline' }): Promise<TestEventStore>;
export async function startTestEventStore(
  options: { mode: 'inline' | 'process' } = { mode: 'inline' },
): Promise<TestEventStore> {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-test-eventstore-'));
  const port = await freePort();
  const url = `esdb://127.0.0.1:${port}?tls=false`;
  return options.mode === 'process' ? inProcess({ url, port, dataDir }) : inline({ url, port, dataDir });
}

interface Place {
  readonly url: string;
  readonly port: number;
  readonly dataDir: string;
}

async function inline({ url, port, dataDir }: Place): Promise<TestEventStore> {
  const start = () => startEventStoreWorker({ dataDir, host: '127.0.0.1', port });
  let store = await start();
  return {
    url,
    port,
    async stop() {
      await store.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
    async restart() {
      await store.stop();
      store = await start();
    },
  };
}

async function inProcess({ url, port, dataDir }: Place): Promise<TestEventStoreProcess> {
  let child = await forkEventStore(dataDir, port);
  return {
    url,
    port,
    get pid() {
      return child.pid ?? 0;
    },
    async stop() {
      await end(child, 'SIGKILL');
      await rm(dataDir, { recursive: true, force: true });
    },
    kill9: () => end(child, 'SIGKILL'),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    async restart() {
      child.kill('SIGCONT');
      await end(child, 'SIGTERM');
      child = await forkEventStore(dataDir, port);
    },
  };
}

async function forkEventStore(dataDir: string, port: number): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, 'event-store.process.ts'), [dataDir, String(port)], {
    // Not the flags of the test runner, which are none of its business.
    execArgv: [],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const ended = new AbortController();
  child.once('exit', (code, signal) => ended.abort(new Error(`the event store ended at once (${code ?? signal})`)));
  await once(child, 'message', { signal: ended.signal }).catch(() => {
    throw ended.signal.reason;
  });
  return child;
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill(signal);
  await exit;
}
