/** The embedded event store in a worker thread, restarted on its port when the thread dies. */
import {
  CannotStartError,
  LocalLog,
  startEventStoreWorker,
  type EventStoreOptions,
  type EventStoreWorker,
} from '#infra/embedded-eventstore/index.ts';
import { withinMemory } from '#libs/platform/config/index.ts';
import {
  retry,
  startBackgroundJob,
  StartRefusal,
  unlessAborted,
  type LifecycleLog,
} from '#libs/platform/lifecycle/index.ts';

export interface EmbeddedEventStoreOptions {
  readonly dataDir: string;
  readonly log: LifecycleLog;
  /** The thread could not be restarted: without the log, Parley cannot serve anything. */
  onLost(error: unknown): void;
}

export interface EmbeddedEventStore {
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

/** @throws StartRefusal when the folder or the port cannot be used */
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
