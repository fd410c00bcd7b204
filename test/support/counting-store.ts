import type { AppendResult, EventStore, StoredEvent } from '#libs/platform/eventstore/index.ts';

/** A store that counts its reads, for tests of what an operation costs. Reset the counts as needed. */
export class CountingStore implements EventStore {
  appends = 0;
  /** Reads of streams that were started. */
  reads = 0;
  /** Reads that are in progress. */
  openReads = 0;
  /** Events that were read. */
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
