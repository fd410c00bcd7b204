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
      // Ends the thread. The connection of a client that is paused would keep it alive until the client answers.
      process.exit(0);
    });
  });
  say({ kind: 'started', port: store.port, url: store.url });
} catch (error) {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  say({ kind: 'failed', name, message });
  parentPort?.close();
}
