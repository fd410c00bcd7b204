import { join } from 'node:path';
import { startPrivateRedis } from '#infra/private-redis/index.ts';
import { conceal } from '#libs/kernel/secrets.ts';
import { passwordsIn, type Config, withinMemory } from '#libs/platform/config/index.ts';
import {
  type LifecycleLog,
  type StopSequence,
  retry,
  startBackgroundJob,
  StartRefusal,
  unlessAborted,
} from '#libs/platform/lifecycle/index.ts';
import {
  CannotStartError,
  LocalLog,
  startEventStoreWorker,
  type EventStoreOptions,
  type EventStoreWorker,
} from '#infra/embedded-eventstore/index.ts';

interface EmbeddedEventStoreOptions {
  readonly dataDir: string;
  readonly log: LifecycleLog;
  /** The thread could not be restarted: without the log, Parley cannot serve anything. */
  onLost(error: unknown): void;
}

interface EmbeddedEventStore {
  /** Its address for as long as this process runs. */
  readonly url: string;
  /** Its log, without gRPC. */
  readonly local: LocalLog;
  stop(): Promise<void>;
}

/** With the pauses between them, about half a minute. */
const CONSECUTIVE_RESTARTS = 10;
/** Events that a reactor holds because it is behind. They take the same again in each of both threads. */
const MAX_IN_FLIGHT_BYTES = 64 * 1024 * 1024;

/**
 * The embedded event store in a worker thread, restarted on its port when the thread dies.
 *
 * @throws StartRefusal when the folder or the port cannot be used
 */
export async function startEmbeddedEventStore(options: EmbeddedEventStoreOptions): Promise<EmbeddedEventStore> {
  const { dataDir, log, onLost } = options;
  const settings = { dataDir, host: '127.0.0.1', maxInFlightBytes: withinMemory(MAX_IN_FLIGHT_BYTES) };
  let worker = await startFirst(settings);
  let ended = endOf(worker);
  const local = new LocalLog();
  local.attach(worker.localPort);
  const { port, url } = worker;

  const supervision = startBackgroundJob({
    name: 'embedded event store',
    log,
    isFatal: () => true,
    onFatal: onLost,
    async run(signal) {
      for (;;) {
        const error = await unlessAborted(ended, signal);
        log.error({ err: error }, 'the thread of the event store has died; restarting it');
        worker = await retry(() => startEventStoreWorker({ ...settings, port }), {
          signal,
          onFailure(error, failures) {
            if (signal.aborted || failures === CONSECUTIVE_RESTARTS) throw error;
          },
        });
        ended = endOf(worker);
        local.attach(worker.localPort);
      }
    },
  });

  return {
    url,
    local,
    async stop() {
      await supervision.stop();
      await worker.stop();
    },
  };
}

async function startFirst(settings: Omit<EventStoreOptions, 'port'>): Promise<EventStoreWorker> {
  try {
    return await startEventStoreWorker({ ...settings, port: 0 });
  } catch (error) {
    throw error instanceof CannotStartError ? new StartRefusal(error.message) : error;
  }
}

function endOf(worker: EventStoreWorker): Promise<Error | undefined> {
  return new Promise((resolve) => worker.onExit(resolve));
}

export interface Stores {
  readonly eventstoreUrl: string;
  readonly redisUrl: string;
}

export interface StartedStores extends Stores {
  /** Of the embedded event store. */
  readonly embedded: EmbeddedEventStore['local'] | undefined;
  /** Of the private Redis. */
  readonly redisSocketPath: string | undefined;
}

export interface StoresOptions {
  readonly stops: StopSequence;
  readonly log: LifecycleLog;
  onLost(error: unknown): void;
  /** Cancels the start. */
  readonly signal?: AbortSignal;
  /** Default: in its own thread. */
  readonly startEventStore?: ((options: EmbeddedEventStoreOptions) => Promise<EmbeddedEventStore>) | undefined;
}

/** Starts the stores without a configured address, concurrently. */
export async function startStores(config: Config, dataDir: string, options: StoresOptions): Promise<StartedStores> {
  const { stops, log, onLost, signal, startEventStore = startEmbeddedEventStore } = options;
  let embedded: EmbeddedEventStore['local'] | undefined;
  let redisSocketPath: string | undefined;
  async function eventStore(): Promise<string> {
    const store = await startEventStore({ dataDir: join(dataDir, 'eventstore'), log, onLost });
    embedded = store.local;
    stops.add('embedded event store', () => store.stop());
    return store.url;
  }
  async function redis(): Promise<string> {
    const store = await startPrivateRedis({ dataDir: join(dataDir, 'redis'), log, ...(signal && { signal }) });
    redisSocketPath = store.socketPath;
    stops.add('private redis', () => store.stop());
    return store.url;
  }
  // Waits for both: a store that has started when the other one fails must be known to `stops`.
  const [eventstoreUrl, redisUrl] = await Promise.allSettled([
    config.eventstoreUrl ?? eventStore(),
    config.redisUrl ?? redis(),
  ]);
  const urls = { eventstoreUrl: valueOf(eventstoreUrl), redisUrl: valueOf(redisUrl) };
  conceal(Object.values(urls).flatMap(passwordsIn));
  return { ...urls, redisSocketPath, embedded };
}

function valueOf(result: PromiseSettledResult<string>): string {
  if (result.status === 'rejected') throw result.reason;
  return result.value;
}
