/**
 * The thread behind `EventStoreThread`: starts and stops event stores on request, and answers each request by its id.
 */
import { parentPort } from 'node:worker_threads';

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
}

export interface Reply {
  readonly id: number;
  readonly error?: string;
}

const servers = new Map<number, EventStoreServer>();

async function serve({ store, start }: Request): Promise<void> {
  if (start !== undefined) return void servers.set(store, await startEmbeddedEventStore(start));
  await servers.get(store)?.stop();
  servers.delete(store);
}

parentPort?.on('message', (request: Request) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  const reply = (outcome: Partial<Reply>): void => parentPort?.postMessage({ id: request.id, ...outcome });
  serve(request).then(
    () => reply({}),
    (error: unknown) => reply({ error: error instanceof Error ? error.message : String(error) }),
  );
});
