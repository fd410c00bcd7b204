export { backUpEventStore, requireReadableLog } from './backup.ts';
export { CannotStartError } from './data-folder.ts';
export { startEmbeddedEventStore } from './server.ts';
export type { EventStoreOptions, EventStoreServer } from './server.ts';
export { startEventStoreWorker } from './worker.ts';
export type { EventStoreWorker } from './worker.ts';
