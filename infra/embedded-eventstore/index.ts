export { backUpEventStore, requireReadableLog } from './backup.ts';
export { CannotStartError } from './data-folder.ts';
export { startEmbeddedEventStore, type EventStoreOptions, type EventStoreServer } from './server.ts';
export { LocalLog } from './local/local-log.ts';
export { startEventStoreWorker, type EventStoreWorker } from './worker.ts';
