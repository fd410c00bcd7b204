// Inside the worker thread of `startEventStoreWorker`.
import { parentPort, workerData } from 'node:worker_threads';
import { startEmbeddedEventStore } from './server.ts';

/** The messages of the thread. Any message to it stops the store. */
export type FromWorker =
  { kind: 'started'; port: number; url: string } | { kind: 'failed'; name: string; message: string };

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
const send = (message: FromWorker): void => parentPort?.postMessage(message);

try {
  const store = await startEmbeddedEventStore(workerData);
  parentPort?.once('message', () => {
    // The connection of a paused client would keep the thread alive until the client responds.
    void store.stop().then(() => process.exit(0));
  });
  send({ kind: 'started', port: store.port, url: store.url });
} catch (error) {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  send({ kind: 'failed', name, message });
  parentPort?.close();
}
