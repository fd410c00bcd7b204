// Inside the worker thread of `startEventStoreWorker`.
import { parentPort, workerData, type MessagePort } from 'node:worker_threads';
import { startEmbeddedEventStore } from './server.ts';

/** The messages of the thread. Any message to it stops the store. */
export type FromWorker =
  | { kind: 'started'; port: number; url: string; localPort: MessagePort }
  | { kind: 'failed'; name: string; message: string };

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
const send = (message: FromWorker, ...transfer: MessagePort[]): void => parentPort?.postMessage(message, transfer);

try {
  const store = await startEmbeddedEventStore(workerData);
  parentPort?.once('message', () => {
    // The connection of a paused client would keep the thread alive until the client responds.
    void store.stop().then(() => process.exit(0));
  });
  const { port, url, localPort } = store;
  send({ kind: 'started', port, url, localPort }, localPort);
} catch (error) {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  send({ kind: 'failed', name, message });
  parentPort?.close();
}
