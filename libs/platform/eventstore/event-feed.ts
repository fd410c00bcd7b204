import type { GlobalPosition } from '#libs/kernel/event.ts';
import type { StoredEvent } from './event-store.ts';

/** How far one partition of a feed was processed. The two statements are true independently of each other. */
export interface PartitionCheckpoint {
  readonly partition: string;
  /**
   * Where to resume: everything before it in the partition was delivered. Opaque, except that it begins with a whole
   * number that orders the checkpoints of a partition, before the first `:`.
   */
  readonly checkpoint: string;
  /** Every event of the partition up to this position of the log was delivered. */
  readonly position: GlobalPosition;
}

/** The end of a partition when it was read. */
export type PartitionEnd = Omit<PartitionCheckpoint, 'position'>;

/** An item of a feed: events, or how far it has come. */
export type FeedItem =
  /** In order per stream; there is no order between streams. */
  | { readonly kind: 'events'; readonly events: readonly [StoredEvent, ...StoredEvent[]] }
  /** Of the whole log: everything up to `position` was delivered or did not match; safe to save. */
  | { readonly kind: 'checkpoint'; readonly position: GlobalPosition }
  /** The partitions that this subscriber has from now on, and where each resumes; it has no others any more. */
  | { readonly kind: 'assigned'; readonly checkpoints: readonly PartitionCheckpoint[] }
  /** The items before this one have brought these partitions so far. `behind`: the number of messages that follow. */
  | { readonly kind: 'reached'; readonly checkpoints: readonly (PartitionCheckpoint & { readonly behind: number })[] }
  /** The end was reached: of the log, or of the partitions as they were when they were assigned. May repeat. */
  | { readonly kind: 'caught-up' }
  /** The last item: what follows a checkpoint is not available in this feed, and has to be read from the log. */
  | { readonly kind: 'lost'; readonly reason: string };

/** Where a subscription to the log starts; exclusive. */
export type LogStart = GlobalPosition | 'start';

/** Reads the checkpoints of all partitions. */
export type ReadCheckpoints = () => Promise<readonly PartitionCheckpoint[]>;

export interface FeedOptions<From> {
  readonly from: From;
  /** Streams to deliver, by prefix (`channel-`), or all of them. System streams are never delivered. */
  readonly streamPrefixes: readonly string[] | 'all';
  /** Upper bound of events in one item. Default 500. */
  readonly maxBatch?: number;
  readonly signal: AbortSignal;
}

/**
 * Ordered committed events per stream, resumable from a checkpoint, delivered at least once.
 *
 * Guarantees: an event of a stream is delivered for the first time only after all events before it; after a lost
 * connection the feed resumes by itself, with backoff, until `signal` aborts; the next item is fetched only when the
 * consumer asks for it, beyond a bounded buffer (back-pressure), and asking for it acknowledges the one before.
 *
 * Omissions: the feed keeps no checkpoints (the consumer saves them); no order between streams; no exactly-once:
 * consumers are guarded by revision.
 *
 * Errors: none while the store is away. `Fault` `stopping` once the connection was closed under the feed.
 */
export interface EventFeed<From> {
  subscribe(options: FeedOptions<From>): AsyncIterable<FeedItem>;
}

/**
 * The whole log, for each subscriber. `from` is exclusive: the first event delivered lies after it; `start` = from the
 * first event. Delivers the events of a stream without holes and without repetitions. Yields `events`, `checkpoint` and
 * `caught-up`.
 */
export interface LogFeed extends EventFeed<LogStart> {
  /** Position of the last event of the log, or null while it is empty: for the lag in readiness. */
  head(): Promise<GlobalPosition | null>;
}

/**
 * The log divided among all subscribers: a stream lies in one partition, and a partition belongs to one subscriber at a
 * time. When a subscriber joins, leaves or fails, partitions are assigned again; then `from` is called for the
 * checkpoints of all partitions. If it throws, that is repeated. Yields everything except `checkpoint`.
 *
 * Omissions: events may be repeated, also after later ones of their stream, and a subscriber that lost a partition may
 * for a moment continue beside its successor.
 */
export interface PartitionedFeed extends EventFeed<ReadCheckpoints> {
  /**
   * The present end of every partition. A consumer that then applies the log up to its end, as it is after this call,
   * may resume from there. Null while the feed is away or has not been filled yet.
   */
  ends(): Promise<readonly PartitionEnd[] | null>;
}
