// Inside the worker thread of `startEventStoreWorker`.
import { parentPort, workerData } from 'node:worker_threads';
import { startEmbeddedEventStore } from './server.ts';

/** What the thread says; it is told to stop by any message. */
export type FromWorker =
  | { kind: 'started'; port: number; url: string }
  | { kind: 'failed'; name: string; message: string }
  | { kind: 'stopped' };

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
const say = (message: FromWorker): void => parentPort?.postMessage(message);

try {
  const store = await startEmbeddedEventStore(workerData);
  parentPort?.once('message', () => {
    void store.stop().then(() => {
      say({ kind: 'stopped' });
      parentPort?.close();
    });
  });
  say({ kind: 'started', port: store.port, url: store.url });
} catch (error) {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  say({ kind: 'failed', name, message });
  parentPort?.close();
}
