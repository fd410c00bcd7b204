import { streamNameFilter } from '@eventstore/db-client';
import type { AllStreamResolvedEvent } from '@eventstore/db-client';
import type { GlobalPosition } from '#libs/kernel/event.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import { backoffMs, pause } from '#libs/platform/lifecycle/index.ts';
import type { BackoffOptions } from '#libs/platform/lifecycle/index.ts';
import type { EventStoreConnection } from './connection.ts';
import type { LogFeed, FeedItem, FeedOptions, LogStart } from './event-feed.ts';
import { EventPull } from './event-pull.ts';
import { checkFeedOptions, DEFAULT_MAX_BATCH } from './feed-options.ts';
import { readLastPosition } from './log-head.ts';
import { comparePositions } from './position.ts';
import { toStoredEvent } from './stored-event.ts';

export interface EventStoreDbFeedOptions {
  /** After so long without anything from the server it is asked whether it is still there. Default 5,000 ms. */
  readonly livenessMs?: number;
  /** Pauses between subscriptions that failed. */
  readonly backoff?: BackoffOptions;
  /** Hears why a subscription ended, and how many have in a row, for the log of the process. */
  readonly onInterruption?: (error: unknown, inARow: number) => void;
}

/** Events that do not match the prefixes, after which the server says how far it has come. */
const CHECKPOINT_EVERY = 256;
const LIVENESS_DEADLINE_MS = 3000;
/** Names of the system's streams begin with `$`. */
const NOT_OF_THE_SYSTEM = '^[^$]';
/** How long a batch waits to be full while there is a log to catch up with; live events never wait. */
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
    let inARow = 0;
    while (!signal.aborted) {
      const subscription = new Subscription(this.#connection, { ...options, from }, maxBatch, this.#options);
      try {
        for (;;) {
          const item = await subscription.next();
          if (!item) break;
          from = positionAfter(item) ?? from;
          inARow = 0;
          yield item;
        }
      } catch (error) {
        this.#options.onInterruption?.(error, ++inARow);
      } finally {
        subscription.close();
      }
      await pause(backoffMs(inARow + 1, this.#options.backoff), signal);
    }
  }

  head(): Promise<GlobalPosition | null> {
    return readLastPosition(this.#connection);
  }
}

/** One subscription of the client, from its start to its first failure. */
class Subscription {
  readonly #connection: EventStoreConnection;
  readonly #signal: AbortSignal;
  readonly #maxBatch: number;
  readonly #livenessMs: number;
  readonly #pull: EventPull<AllStreamResolvedEvent>;
  readonly #onAbort: () => void;
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
      // Nothing here may throw: the client would stop the subscription without a word.
      checkpointReached: (_: unknown, position: GlobalPosition) => {
        this.#checkpoint = position;
        // It has to wait for the events before it, which need no waking.
        if (this.#pull.drained) this.#pull.notify();
      },
    };
    const filter =
      streamPrefixes === 'all'
        ? streamNameFilter({ regex: NOT_OF_THE_SYSTEM, ...reporting })
        : streamNameFilter({ prefixes: [...streamPrefixes], ...reporting });
    const source = connection.client.subscribeToAll({ fromPosition: from, filter }, { highWaterMark: maxBatch });
    this.#pull = new EventPull(source, () => source.unsubscribe());
    source.on('caughtUp', () => {
      this.#caughtUp = true;
      this.#pull.notify();
    });
    this.#onAbort = () => this.#pull.notify();
    signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** The next item, or null once the feed is aborted. Errors: whatever ended the subscription. */
  async next(): Promise<FeedItem | null> {
    while (!this.#signal.aborted) {
      // Events that are applied together cost less, and whoever catches up is in no hurry for the first.
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
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#pull.close();
  }

  #take(): FeedItem | null {
    // The marks below overtake events that are still buffered, so they have to wait for these.
    const taken = this.#pull.take(this.#maxBatch);
    const [first, ...rest] = taken.map(toStoredEvent).filter((event) => event !== null);
    if (first) {
      const last = rest.at(-1) ?? first;
      this.#known = last.position;
      return { kind: 'events', events: [first, ...rest] };
    }
    if (!this.#pull.drained) return null;
    const position = this.#checkpoint;
    this.#checkpoint = null;
    if (position && this.#isNews(position)) {
      this.#known = position;
      return { kind: 'checkpoint', position };
    }
    if (!this.#caughtUp) return null;
    this.#caughtUp = false;
    this.#live = true;
    return { kind: 'caught-up' };
  }

  #isNews(position: GlobalPosition): boolean {
    return this.#known === null || comparePositions(position, this.#known) > 0;
  }

  /**
   * A quiet log and a dead server look the same from here, so the server is asked for the head of the
   * log. A server that answers but has not moved this subscription although the log has grown since
   * the last time is distrusted as well: a new subscription costs little.
   */
  async #proveLiveness(): Promise<void> {
    const known = this.#known;
    const head = await readLastPosition(this.#connection, LIVENESS_DEADLINE_MS);
    if (!this.#pull.drained || this.#known !== known) return;
    const before = this.#headWhenSilent;
    this.#headWhenSilent = head;
    if (before && this.#isNews(before)) {
      throw storeUnavailable('event store', new Error('the subscription stands still while the log grows'));
    }
  }
}

function positionAfter(item: FeedItem): GlobalPosition | null {
  if (item.kind === 'checkpoint') return item.position;
  if (item.kind === 'events') return item.events.at(-1)?.position ?? null;
  return null;
}
