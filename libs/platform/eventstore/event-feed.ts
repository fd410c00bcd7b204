import type { GlobalPosition, StreamRevision } from '#libs/kernel/event.ts';
import { withinMemory } from '#libs/platform/config/index.ts';
import { backoffMs, pause, type BackoffOptions } from '#libs/platform/lifecycle/index.ts';

import type { StoredEvent } from './event-store.ts';

/** How far one partition of a feed was processed, in two independent ways. */
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

export type FeedItem =
  /** In order per stream; there is no order between streams. */
  | { readonly kind: 'events'; readonly events: readonly [StoredEvent, ...StoredEvent[]] }
  /** Every event of the log up to `position` was delivered or did not match; safe to save. */
  | { readonly kind: 'checkpoint'; readonly position: GlobalPosition }
  /** The partitions assigned to this subscriber from now on, and where each resumes; it has lost all others. */
  | { readonly kind: 'assigned'; readonly checkpoints: readonly PartitionCheckpoint[] }
  /** The items before this one have reached these checkpoints. `behind`: the number of messages after it. */
  | { readonly kind: 'reached'; readonly checkpoints: readonly (PartitionCheckpoint & { readonly behind: number })[] }
  /** The end was reached: of the log, or of the partitions at the time of their assignment. May repeat. */
  | { readonly kind: 'caught-up' }
  /** The last item: this feed lacks the events after a checkpoint. Read them from the log. */
  | { readonly kind: 'lost'; readonly reason: string };

/** Where a subscription to the log starts: after a position, or with the first event. */
export type LogStart = GlobalPosition | 'start';

export type ReadCheckpoints = () => Promise<readonly PartitionCheckpoint[]>;

export interface FeedOptions<From> {
  readonly from: From;
  /** Streams to deliver, by prefix (`channel-`), or all of them. System streams are never delivered. */
  readonly streamPrefixes: readonly string[] | 'all';
  /** Upper bound of events in one item. Default 500. */
  readonly maxBatch?: number;
  /** Called before the first item after an interruption: the server may have come back with another log. */
  readonly onResumed?: () => void;
  readonly signal: AbortSignal;
}

/**
 * Ordered committed events per stream, resumable from a checkpoint, delivered at least once.
 *
 * Guarantees: an event of a stream is delivered for the first time only after all events before it; after a lost
 * connection the feed resumes by itself, with backoff, until `signal` aborts; the next item is fetched only when the
 * consumer requests it, beyond a bounded buffer (back-pressure), and the request acknowledges the one before.
 *
 * Omissions: the feed keeps no checkpoints (the consumer saves them); no order between streams; no exactly-once:
 * consumers are guarded by revision.
 *
 * Errors: none while the store is unavailable. `Fault` `stopping` once the connection was closed.
 */
export interface EventFeed<From> {
  subscribe(options: FeedOptions<From>): AsyncIterable<FeedItem>;
}

/**
 * The whole log, for each subscriber, without gaps or duplicates in a stream. Yields `events`, `checkpoint` and
 * `caught-up`.
 */
export interface LogFeed extends EventFeed<LogStart> {
  /** Position of the last event of the log, or null while it is empty. */
  head(): Promise<GlobalPosition | null>;
  /**
   * Id of the event at exactly this position, or null. Also of an event whose stream was deleted or truncated, until the
   * event store removes it from its files.
   */
  idAt(position: GlobalPosition): Promise<string | null>;
  /** Whether an operator deleted or truncated the stream, or limited its age or length, so that a revision may be missing. */
  mayHaveRemoved(stream: string, revision: StreamRevision): Promise<boolean>;
}

/**
 * The log divided among all subscribers: a stream lies in one partition, and a partition belongs to one subscriber at a
 * time. When a subscriber joins, leaves or fails, the partitions are assigned again, and the feed calls `from`, repeatedly
 * if it throws. Yields all items except `checkpoint`.
 *
 * Omissions: events may be repeated, also after later ones of their stream; a subscriber that lost a partition may process
 * it for a moment beside its successor.
 */
export interface PartitionedFeed extends EventFeed<ReadCheckpoints> {
  /**
   * The current end of every partition. A consumer may resume there once it has applied the log up to the head that it
   * read after this call. Null while the feed is unavailable or not filled yet.
   *
   * @param upTo a position that the feed must have reached, or else it has no ends yet; null for any
   */
  ends(upTo?: GlobalPosition | null): Promise<readonly PartitionEnd[] | null>;
}

/** How a feed subscribes again after a failure. */
export interface FeedRetries {
  /** Pauses after failed subscriptions. */
  readonly backoff?: BackoffOptions;
  /** Called when a subscription fails, with the number of consecutive failures. */
  readonly onInterruption?: (error: unknown, failures: number) => void;
}

/** A feed of the log, from its start to its first failure. */
export interface OpenFeed {
  /** The next item, or null once the signal of the feed has aborted. @throws the error that ended it */
  next(): Promise<FeedItem | null>;
  close(): void;
}

/** Follows the log until the signal aborts: each subscription begins where the failed one before it ended. */
export async function* resumingFeed(
  options: FeedOptions<LogStart>,
  { backoff, onInterruption }: FeedRetries,
  open: (from: LogStart) => OpenFeed,
): AsyncGenerator<FeedItem, void, undefined> {
  const { signal } = options;
  checkFeedOptions(options);
  let { from } = options;
  let failures = 0;
  let isResumed = false;
  while (!signal.aborted) {
    const subscription = open(from);
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
      onInterruption?.(error, ++failures);
    } finally {
      subscription.close();
    }
    isResumed = true;
    await pause(backoffMs(failures + 1, backoff), signal);
  }
}

function positionAfter(item: FeedItem): GlobalPosition | null {
  if (item.kind === 'checkpoint') return item.position;
  if (item.kind === 'events') return item.events.at(-1)?.position ?? null;
  return null;
}

export const DEFAULT_MAX_BATCH = withinMemory(500);

/** @throws TypeError for no prefix, an empty one, or one of system streams; RangeError for an invalid batch size */
export function checkFeedOptions(options: Pick<FeedOptions<unknown>, 'streamPrefixes' | 'maxBatch'>): void {
  const { streamPrefixes, maxBatch = DEFAULT_MAX_BATCH } = options;
  if (streamPrefixes.length === 0) throw new TypeError('a feed needs a stream prefix');
  for (const prefix of streamPrefixes === 'all' ? [] : streamPrefixes) {
    if (prefix === '' || prefix.startsWith('$')) {
      throw new TypeError(`invalid prefix of a feed: ${JSON.stringify(prefix)}`);
    }
  }
  if (!Number.isSafeInteger(maxBatch) || maxBatch < 1) throw new RangeError(`invalid batch size: ${maxBatch}`);
}
