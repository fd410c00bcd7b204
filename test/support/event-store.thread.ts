/**
 * The thread behind `EventStoreThread`: starts and stops event stores on request, and answers each request by its id.
 */
import { parentPort, type MessagePort } from 'node:worker_threads';

import {
  type EventStoreOptions,
  type EventStoreServer,
  startEmbeddedEventStore,
} from '#infra/embedded-eventstore/index.ts';

export interface Request {
  readonly id: number;
  readonly store: number;
  /** Starts the store with these options; stops it when they are absent. */
  readonly start?: EventStoreOptions;
  /** Blocks the thread, and all its stores, until another thread wakes it. */
  readonly pause?: Int32Array;
}

export interface Reply {
  readonly id: number;
  readonly error?: string;
  /** Of a store that has started, for a `LocalLog`. */
  readonly localPort?: MessagePort;
}

const servers = new Map<number, EventStoreServer>();

async function serve({ store, start, pause }: Request): Promise<Partial<Reply>> {
  if (pause !== undefined) {
    Atomics.wait(pause, 0, 0);
  } else if (start === undefined) {
    await servers.get(store)?.stop();
    servers.delete(store);
  } else {
    const server = await startEmbeddedEventStore(start);
    servers.set(store, server);
    return { localPort: server.localPort };
  }
  return {};
}

parentPort?.on('message', (request: Request) => {
  const reply = (outcome: Partial<Reply>): void =>
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    parentPort?.postMessage({ id: request.id, ...outcome }, outcome.localPort ? [outcome.localPort] : []);
  serve(request).then(reply, (error: unknown) =>
    reply({ error: error instanceof Error ? error.message : String(error) }),
  );
});
