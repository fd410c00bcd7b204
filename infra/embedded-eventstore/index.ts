import type { EventStoreOptions, EventStoreServer } from './server.ts';

export { backUpEventStore, requireReadableLog } from './backup.ts';
export { CannotStartError } from './data-folder.ts';
export type { EventStoreOptions, EventStoreServer } from './server.ts';
export { LocalLog } from './local/local-log.ts';
export { startEventStoreWorker, type EventStoreWorker } from './worker.ts';

/**
 * Starts an event store in the current thread. Loads gRPC, protobuf and LMDB, which a process with `startEventStoreWorker`
 * does without.
 * @throws CannotStartError (rejects) when the folder or the port is not available
 */
export async function startEmbeddedEventStore(options: EventStoreOptions): Promise<EventStoreServer> {
  const server = await import('./server.ts');
  return server.startEmbeddedEventStore(options);
}
