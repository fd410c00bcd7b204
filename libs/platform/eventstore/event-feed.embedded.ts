import type { GlobalPosition, StreamRevision } from '#libs/kernel/event.ts';
import { type EmbeddedEvents, jsonIn, type LogEvent, positionOf } from './embedded-events.ts';
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
import type { StoredEvent } from './event-store.ts';

/** Number of events without a match after which there is a checkpoint. */
const CHECKPOINT_EVERY = 256;

/** {@link LogFeed} on the embedded event store of this process: subscribers share the decoded events. */
export class EmbeddedFeed implements LogFeed {
  readonly #events: EmbeddedEvents;
  readonly #retries: FeedRetries;

  constructor(events: EmbeddedEvents, retries: FeedRetries = {}) {
    this.#events = events;
    this.#retries = retries;
  }

  subscribe(options: FeedOptions<LogStart>): AsyncIterable<FeedItem> {
    return resumingFeed(options, this.#retries, (from) => new Subscription(this.#events, { ...options, from }));
  }

  async head(): Promise<GlobalPosition | null> {
    const head = await this.#events.head();
    return head === 0 ? null : positionOf(head);
  }

  async idAt({ commit }: GlobalPosition): Promise<string | null> {
    const position = Number(commit);
    const page = await this.#events.answer(() => this.#events.log.readAll(position, 'forwards', 1));
    const [event] = page.events;
    return event?.position === position ? event.id : null;
  }

  async mayHaveRemoved(stream: string, revision: StreamRevision): Promise<boolean> {
    const newest = (of: string) => this.#events.answer(() => this.#events.log.readStream(of, 'end', 'backwards', 1));
    const { status, events } = await newest(`$$${stream}`);
    if (status === 'deleted') return true;
    const metadata = events[0] === undefined ? null : jsonIn(events[0].data, () => null);
    if (typeof metadata !== 'object' || metadata === null) return false;
    const truncateBefore: unknown = '$tb' in metadata ? metadata.$tb : 0;
    return Number(truncateBefore) > revision || '$maxAge' in metadata || '$maxCount' in metadata;
  }
}

/** From one position on, until it fails. */
class Subscription implements OpenFeed {
  readonly #events: EmbeddedEvents;
  readonly #signal: AbortSignal;
  readonly #maxBatch: number;
  readonly #isSelected: (stream: string) => boolean;
  /** Position up to which events were looked at. */
  #seen: number;
  /** Position up to which everything was yielded. */
  #known: number;
  /** Position of the last event when the subscription began. */
  #endAtStart: number | undefined;
  #isCaughtUp = false;

  constructor(events: EmbeddedEvents, options: FeedOptions<LogStart>) {
    const { from, streamPrefixes, signal, maxBatch = DEFAULT_MAX_BATCH } = options;
    // Also ends the feed, whose further subscriptions would fail as well.
    events.closed.throwIfAborted();
    this.#events = events;
    this.#signal = signal;
    this.#maxBatch = maxBatch;
    this.#isSelected =
      streamPrefixes === 'all'
        ? (stream) => !stream.startsWith('$')
        : (stream) => streamPrefixes.some((prefix) => stream.startsWith(prefix));
    this.#seen = from === 'start' ? 0 : Number(from.commit);
    this.#known = this.#seen;
  }

  async next(): Promise<FeedItem | null> {
    // The end of the log that this process knows may be older than an event that it has appended.
    this.#endAtStart ??= await this.#events.head();
    while (!this.#signal.aborted) {
      const batch = await this.#events.from(this.#seen + 1, this.#maxBatch);
      this.#seen += batch.length;
      const isAtEnd = batch.length === 0 && this.#seen >= this.#endAtStart;
      const item = this.#selected(batch) ?? this.#checkpoint(isAtEnd) ?? (isAtEnd ? this.#caughtUp() : null);
      if (item !== null) return item;
      if (batch.length === 0) await this.#events.grownBeyond(this.#seen, this.#signal);
    }
    return null;
  }

  #selected(batch: readonly LogEvent[]): FeedItem | null {
    const [first, ...rest] = batch
      .map(({ event }) => event)
      .filter((event): event is StoredEvent => event !== null && this.#isSelected(event.stream));
    if (first === undefined) return null;
    this.#known = Number((rest.at(-1) ?? first).position?.commit);
    return { kind: 'events', events: [first, ...rest] };
  }

  /** Due after many events of other streams, and once at the end. */
  #checkpoint(isAtEnd: boolean): FeedItem | null {
    const distance = this.#seen - this.#known;
    if (distance < (isAtEnd && !this.#isCaughtUp ? 1 : CHECKPOINT_EVERY)) return null;
    this.#known = this.#seen;
    return { kind: 'checkpoint', position: positionOf(this.#seen) };
  }

  #caughtUp(): FeedItem | null {
    if (this.#isCaughtUp) return null;
    this.#isCaughtUp = true;
    return { kind: 'caught-up' };
  }

  close(): void {
    // `next` holds nothing.
  }
}
