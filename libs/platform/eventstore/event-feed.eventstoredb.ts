import { streamNameFilter, type AllStreamResolvedEvent } from '@eventstore/db-client';
import type { GlobalPosition, StreamRevision } from '#libs/kernel/event.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import { backoffMs, pause, type BackoffOptions } from '#libs/platform/lifecycle/index.ts';
import type { EventStoreConnection } from './connection.ts';
import {
  checkFeedOptions,
  DEFAULT_MAX_BATCH,
  type FeedItem,
  type FeedOptions,
  type LogFeed,
  type LogStart,
} from './event-feed.ts';
import { EventPull, toStoredEvent } from './event-pull.ts';
import { comparePositions } from './position.ts';

export interface EventStoreDbFeedOptions {
  /** Silence of the server after which the feed checks that it is alive. Default 5,000. */
  readonly livenessMs?: number;
  /** Pauses after failed subscriptions. */
  readonly backoff?: BackoffOptions;
  /** Called when a subscription fails, with the number of consecutive failures. */
  readonly onInterruption?: (error: unknown, failures: number) => void;
}

/** Number of events without a match after which the server sends a checkpoint. */
const CHECKPOINT_EVERY = 256;
const NO_SYSTEM_STREAM = '^[^$]';
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

  async *subscribe(options: FeedOptions<LogStart>): AsyncGenerator<FeedItem, void, undefined> {
    const { signal, maxBatch = DEFAULT_MAX_BATCH } = options;
    checkFeedOptions(options);
    let from = options.from;
    let failures = 0;
    let isResumed = false;
    while (!signal.aborted) {
      const subscription = new Subscription(this.#connection, { ...options, from }, maxBatch, this.#options);
      try {
        for (;;) {
          const item = await subscription.next();
          if (!item) break;
          from = positionAfter(item) ?? from;
          failures = 0;
          if (isResumed) options.onResumed?.();
          isResumed = false;
          yield item;
        }
      } catch (error) {
        this.#options.onInterruption?.(error, ++failures);
      } finally {
        subscription.close();
      }
      isResumed = true;
      await pause(backoffMs(failures + 1, this.#options.backoff), signal);
    }
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

/** One subscription of the client, from its start to its first failure. */
class Subscription {
  readonly #connection: EventStoreConnection;
  readonly #signal: AbortSignal;
  readonly #maxBatch: number;
  readonly #livenessMs: number;
  readonly #pull: EventPull<AllStreamResolvedEvent>;
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
    const reporting = {
      maxSearchWindow: CHECKPOINT_EVERY,
      checkpointInterval: 1,
      // Must not throw: the client would end the subscription without an error.
      checkpointReached: (_: unknown, position: GlobalPosition) => {
        this.#checkpoint = position;
        // Waits for the events before it.
        if (this.#pull.drained) this.#pull.notify();
      },
    };
    const filter =
      streamPrefixes === 'all'
        ? streamNameFilter({ regex: NO_SYSTEM_STREAM, ...reporting })
        : streamNameFilter({ prefixes: [...streamPrefixes], ...reporting });
    const source = connection.client.subscribeToAll({ fromPosition: from, filter }, { highWaterMark: maxBatch });
    this.#pull = new EventPull(source, () => source.unsubscribe(), signal);
    source.on('caughtUp', () => {
      this.#caughtUp = true;
      this.#pull.notify();
    });
  }

  /** The next item, or null once the feed is aborted. @throws the error that ended the subscription */
  async next(): Promise<FeedItem | null> {
    while (!this.#signal.aborted) {
      // Applying events together costs less.
      const gathers = !this.#live && !this.#caughtUp && !this.#pull.drained;
      if (gathers) await this.#pull.wait(GATHER_MS, this.#maxBatch);
      const item = this.#take();
      if (item) return item;
      if (this.#pull.ended) throw storeUnavailable('event store', new Error('the server ended the subscription'));
      if (await this.#pull.wait(this.#livenessMs)) continue;
      await this.#proveLiveness();
    }
    return null;
  }

  close(): void {
    this.#pull.close();
  }

  #take(): FeedItem | null {
    // Checkpoints and `caught-up` overtake events that are still buffered, so they have to wait for these.
    const taken = this.#pull.take(this.#maxBatch);
    const [first, ...rest] = taken
      .map((resolved) => toStoredEvent(resolved, this.#connection.foreign))
      .filter((event) => event !== null);
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
      throw storeUnavailable('event store', new Error('the subscription makes no progress while the log grows'));
    }
  }
}

function positionAfter(item: FeedItem): GlobalPosition | null {
  if (item.kind === 'checkpoint') return item.position;
  if (item.kind === 'events') return item.events.at(-1)?.position ?? null;
  return null;
}
