/**
 * An event store with an empty log for one test file, with ways to make it fail: a container, or the embedded event
 * store.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EventStoreDBClient } from '@eventstore/db-client';
import { LocalLog } from '#infra/embedded-eventstore/index.ts';
import { EventStoreThread } from './event-store-thread.ts';
import { onFreePort } from './on-free-port.ts';
import { chooseStore } from './stores/choice.ts';

export interface TestEventStore {
  /** `esdb://HOST:PORT?tls=false`; a restart keeps it. */
  readonly url: string;
  readonly port: number;
  /** The same without gRPC, where it runs in this process. */
  readonly local?: LocalLog | undefined;
  /** Ends it and removes its data. */
  stop(): Promise<void>;
  /** Stops it cleanly if it runs, and starts it again on the same port and data. */
  restart(): Promise<void>;
}

export interface TestEventStoreProcess extends TestEventStore {
  /** `kill -9`; resolves when the process has exited. `restart` uses the same data. */
  kill9(): Promise<void>;
  /** Freezes it: connections stay open, requests get no answer. */
  pause(): Promise<void>;
  /** Ends `pause`; does nothing if it was not paused. */
  resume(): Promise<void>;
}

/**
 * The server of `EVENTSTORE_URL`, which may hold other events, else a new one. For tests that use new ids and read
 * only their own streams; not for read models, which fold the whole log.
 */
export async function startSharedEventStore(): Promise<Pick<TestEventStore, 'url' | 'stop'>> {
  const url = process.env['EVENTSTORE_URL'];
  return url ? { url, stop: async () => undefined } : startTestEventStore();
}

/**
 * Always a new server, also where `EVENTSTORE_URL` is set. Natively, `inline` runs in a worker thread of the test
 * process (milliseconds to start), and `process` in its own process, which alone can be killed and paused. In a
 * container there is no difference.
 */
export async function startTestEventStore(options: {
  mode: 'process';
  /** See `EventStoreOptions` of the embedded store; natively only. */
  keepAliveMs?: number;
}): Promise<TestEventStoreProcess>;
export async function startTestEventStore(options?: { mode: 'inline' }): Promise<TestEventStore>;
export async function startTestEventStore(
  options: { mode: 'inline' | 'process'; keepAliveMs?: number } = { mode: 'inline' },
): Promise<TestEventStore> {
  const choice = await chooseStore('eventstore');
  if (choice.from === 'container') return startInContainer(choice.image);
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-test-eventstore-'));
  return onFreePort<TestEventStore>((port) => {
    const url = `esdb://127.0.0.1:${port}?tls=false`;
    const place = { url, port, dataDir, keepAliveMs: options.keepAliveMs };
    return options.mode === 'process' ? inProcess(place) : inline(place);
  });
}

async function startInContainer(image: string): Promise<TestEventStoreProcess> {
  // Loads testcontainers, which takes a second that native runs need not spend.
  const { startStoreContainer } = await import('./stores/container.ts');
  const urlOf = (host: string, port: number): string => `esdb://${host}:${port}?tls=false`;
  const container = await startStoreContainer({
    image,
    innerPort: 2113,
    environment: () => SETTINGS,
    probe: ({ host, port }) => readSomething(urlOf(host, port)),
  });
  return { ...container, url: urlOf(container.host, container.port) };
}

/** Settings of a single node without TLS, by the names of EventStoreDB and of KurrentDB. */
const SETTINGS = Object.fromEntries(
  Object.entries({ INSECURE: 'true', CLUSTER_SIZE: '1', RUN_PROJECTIONS: 'None' }).flatMap(([name, value]) =>
    ['EVENTSTORE', 'KURRENTDB'].map((prefix) => [`${prefix}_${name}`, value]),
  ),
);

/** Rejects until the server answers reads. */
async function readSomething(url: string): Promise<void> {
  const client = EventStoreDBClient.connectionString(`${url}&maxDiscoverAttempts=1&defaultDeadline=2000`);
  try {
    for await (const _event of client.readAll({ maxCount: 1 })) break;
  } finally {
    await client.dispose();
  }
}

interface Place {
  readonly url: string;
  readonly port: number;
  readonly dataDir: string;
  readonly keepAliveMs?: number | undefined;
}

let thread: EventStoreThread | undefined;

async function inline({ url, port, dataDir }: Place): Promise<TestEventStore> {
  thread ??= new EventStoreThread();
  const local = new LocalLog();
  const startIn = thread.start.bind(thread, { dataDir, host: '127.0.0.1', port, insecure: true });
  const start = async (): Promise<() => Promise<void>> => {
    const started = await startIn();
    if (started.localPort !== undefined) local.attach(started.localPort);
    return started.stop;
  };
  let stop = await start();
  return {
    url,
    port,
    local,
    async stop() {
      await stop();
      await rm(dataDir, { recursive: true, force: true });
    },
    async restart() {
      await stop();
      stop = await start();
    },
  };
}

async function inProcess({ url, ...place }: Place): Promise<TestEventStoreProcess> {
  const { port, dataDir } = place;
  let child = await forkEventStore(place);
  return {
    url,
    port,
    async stop() {
      await end(child, 'SIGKILL');
      await rm(dataDir, { recursive: true, force: true });
    },
    kill9: () => end(child, 'SIGKILL'),
    pause: async () => void child.kill('SIGSTOP'),
    resume: async () => void child.kill('SIGCONT'),
    async restart() {
      child.kill('SIGCONT');
      await end(child, 'SIGTERM');
      child = await forkEventStore(place);
    },
  };
}

async function forkEventStore({ dataDir, port, keepAliveMs }: Omit<Place, 'url'>): Promise<ChildProcess> {
  const args = [dataDir, String(port), ...(keepAliveMs === undefined ? [] : [String(keepAliveMs)])];
  const child = fork(join(import.meta.dirname, 'event-store.process.ts'), args, {
    // The flags of the test runner are not meant for this process.
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
