// Starts the server in a worker thread: on the main thread it would take half of
// the throughput. The end of the thread is always reported.
import { Worker } from 'node:worker_threads';
import { CannotStartError } from './data-folder.ts';
import type { EventStoreOptions, EventStoreServer } from './server.ts';
import type { FromWorker } from './worker-thread.ts';

export type EventStoreWorker = EventStoreServer & {
  /** Calls `listener` once when the thread ends: without an error after `stop`, else with the reason. */
  onExit(listener: (error: Error | undefined) => void): void;
};

/**
 * Starts an event store in a new worker thread.
 * @throws CannotStartError (rejects) when the folder or the port is not available; Error when the thread ends at once
 */
export function startEventStoreWorker(options: EventStoreOptions): Promise<EventStoreWorker> {
  return startThread(new URL('./worker-thread.ts', import.meta.url), options);
}

/** With another script for the thread, for tests of its failure. */
export async function startThread(script: URL, options: EventStoreOptions): Promise<EventStoreWorker> {
  const worker = new Worker(script, {
    workerData: options,
    // Without the flags of a test runner or profiler.
    execArgv: [],
    name: 'embedded-eventstore',
  });
  let failure: Error | undefined;
  let stopping = false;
  worker.on('error', (error: Error) => (failure = error));
  const exited = new Promise<Error | undefined>((resolve) => {
    worker.once('exit', () => {
      resolve(stopping ? undefined : (failure ?? new Error('the thread of the event store ended')));
    });
  });
  const message = await Promise.race([
    new Promise<FromWorker>((resolve) => worker.once('message', resolve)),
    exited.then((error) => {
      throw error;
    }),
  ]);
  if (message.kind === 'failed') {
    await exited;
    throw new (message.name === 'CannotStartError' ? CannotStartError : Error)(message.message);
  }
  return {
    port: message.port,
    url: message.url,
    localPort: message.localPort,
    onExit: (listener) => void exited.then(listener),
    stop: async () => {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      if (!stopping) worker.postMessage('stop');
      stopping = true;
      await exited;
    },
  };
}
