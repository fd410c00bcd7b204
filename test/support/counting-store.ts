import type { AppendResult, EventStore, StoredEvent } from '#libs/platform/eventstore/index.ts';

/** The same store; it counts what it is asked for, for tests of what something costs. Reset the counts as needed. */
export class CountingStore implements EventStore {
  appends = 0;
  /** Streams that were begun to be read. */
  reads = 0;
  /** Reads that have begun and not ended. */
  openReads = 0;
  /** Events that were taken from them. */
  eventsRead = 0;
  readonly #store: EventStore;

  constructor(store: EventStore) {
    this.#store = store;
  }

  append(...args: Parameters<EventStore['append']>): Promise<AppendResult> {
    this.appends++;
    return this.#store.append(...args);
  }

  readStream(...args: Parameters<EventStore['readStream']>): AsyncIterable<StoredEvent> {
    this.reads++;
    return this.#counted(this.#store.readStream(...args));
  }

  ping(): Promise<void> {
    return this.#store.ping();
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  async *#counted(events: AsyncIterable<StoredEvent>): AsyncGenerator<StoredEvent> {
    this.openReads++;
    try {
      for await (const event of events) {
        this.eventsRead++;
        yield event;
      }
    } finally {
      this.openReads--;
    }
  }
}
