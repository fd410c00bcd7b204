import type { GlobalPosition, StreamRevision } from '#libs/kernel/event.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import type { ReadItem } from './client/read-responses.ts';
import type { EventStoreConnection } from './connection.ts';
import {
  DEFAULT_MAX_BATCH,
  type FeedItem,
  type FeedOptions,
  type FeedRetries,
  type LogFeed,
  type LogStart,
  type OpenFeed,
  resumingFeed,
} from './event-feed.ts';
import { type EventPull, toStoredEvent } from './event-pull.ts';
import type { StoredEvent } from './event-store.ts';
import { comparePositions } from './position.ts';

export interface EventStoreDbFeedOptions extends FeedRetries {
  /** Silence of the server after which the feed checks that it is alive. Default 5,000. */
  readonly livenessMs?: number;
}

/** How long an incomplete batch waits while the feed catches up; live events never wait. */
const GATHER_MS = 10;

/** {@link LogFeed} on EventStoreDB: catch-up subscriptions to `$all`, filtered by the server. */
export class EventStoreDbFeed implements LogFeed {
  readonly #connection: EventStoreConnection;
  readonly #options: EventStoreDbFeedOptions;

  constructor(connection: EventStoreConnection, options: EventStoreDbFeedOptions = {}) {
    this.#connection = connection;
    this.#options = options;
  }

  subscribe(options: FeedOptions<LogStart>): AsyncIterable<FeedItem> {
    const { maxBatch = DEFAULT_MAX_BATCH } = options;
    return resumingFeed(
      options,
      this.#options,
      (from) => new Subscription(this.#connection, { ...options, from }, maxBatch, this.#options),
    );
  }

  head(): Promise<GlobalPosition | null> {
    return this.#connection.head();
  }

  idAt(position: GlobalPosition): Promise<string | null> {
    return this.#connection.idAt(position);
  }

  mayHaveRemoved(stream: string, revision: StreamRevision): Promise<boolean> {
    return this.#connection.mayHaveRemoved(stream, revision);
  }
}

/** One subscription, from its start to its first failure. */
class Subscription implements OpenFeed {
  readonly #connection: EventStoreConnection;
  readonly #signal: AbortSignal;
  readonly #maxBatch: number;
  readonly #livenessMs: number;
  readonly #pull: EventPull<ReadItem>;
  /** Position up to which everything was yielded. */
  #known: GlobalPosition | null;
  #checkpoint: GlobalPosition | null = null;
  #caughtUp = false;
  #live = false;
  /** Head of the log when the subscription was last found silent. */
  #headWhenSilent: GlobalPosition | null = null;

  constructor(
    connection: EventStoreConnection,
    { from, streamPrefixes, signal }: FeedOptions<LogStart>,
    maxBatch: number,
    { livenessMs = 5000 }: EventStoreDbFeedOptions,
  ) {
    this.#connection = connection;
    this.#signal = signal;
    this.#maxBatch = maxBatch;
    this.#livenessMs = livenessMs;
    this.#known = from === 'start' ? null : from;
    this.#pull = connection.subscribe({ from, wanted: { streamPrefixes } }, maxBatch, signal);
  }

  /** The next item, or null once the feed is aborted. @throws the error that ended the subscription */
  async next(): Promise<FeedItem | null> {
    while (!this.#signal.aborted) {
      // Applying events together costs less.
      const gathers = !this.#live && !this.#caughtUp && !this.#pull.drained;
      if (gathers) await this.#pull.wait(GATHER_MS, this.#maxBatch);
      const item = this.#take();
      if (item) return item;
      if (this.#pull.ended) throw storeUnavailable('the event store', new Error('the server ended the subscription'));
      if (await this.#pull.wait(this.#livenessMs)) continue;
      await this.#proveLiveness();
    }
    return null;
  }

  close(): void {
    this.#pull.close();
  }

  #take(): FeedItem | null {
    const events: StoredEvent[] = [];
    for (const item of this.#pull.take(this.#maxBatch)) {
      if (item.kind === 'checkpoint') this.#checkpoint = item.position;
      else if (item.kind === 'caught-up') this.#caughtUp = true;
      else if (item.kind === 'event') {
        const event = toStoredEvent(item, this.#connection.foreign);
        if (event) events.push(event);
      }
    }
    const [first, ...rest] = events;
    if (first) {
      const last = rest.at(-1) ?? first;
      this.#known = last.position;
      return { kind: 'events', events: [first, ...rest] };
    }
    if (!this.#pull.drained) return null;
    const position = this.#checkpoint;
    this.#checkpoint = null;
    if (position && this.#isAhead(position)) {
      this.#known = position;
      return { kind: 'checkpoint', position };
    }
    if (!this.#caughtUp) return null;
    this.#caughtUp = false;
    this.#live = true;
    return { kind: 'caught-up' };
  }

  #isAhead(position: GlobalPosition): boolean {
    return this.#known === null || comparePositions(position, this.#known) > 0;
  }

  /**
   * Reads the head of the log, to tell a log without new events from a dead server. Also fails when this subscription has
   * made no progress although the log has grown since the last check.
   */
  async #proveLiveness(): Promise<void> {
    const known = this.#known;
    const head = await this.#connection.head();
    if (!this.#pull.drained || this.#known !== known) return;
    const before = this.#headWhenSilent;
    this.#headWhenSilent = head;
    if (before && this.#isAhead(before)) {
      throw storeUnavailable('the event store', new Error('the subscription makes no progress while the log grows'));
    }
  }
}
