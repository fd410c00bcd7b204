import type { GlobalPosition } from '#libs/kernel/event.ts';
import type { StoredEvent } from './event-store.ts';

/** What a feed yields: events in log order, and marks that say how far it has come. */
export type FeedItem =
  | { readonly kind: 'events'; readonly events: readonly [StoredEvent, ...StoredEvent[]] }
  /** Everything up to `position` was delivered or did not match; safe to save as a checkpoint. */
  | { readonly kind: 'checkpoint'; readonly position: GlobalPosition }
  /** The end of the log was reached; what follows is live. May repeat after a reconnection. */
  | { readonly kind: 'caught-up' };

export interface FeedOptions {
  /** Exclusive: the first event delivered lies after it. `start` = from the first event of the log. */
  readonly from: GlobalPosition | 'start';
  /** Streams to deliver, by prefix (`channel-`), or all of them. System streams are never delivered. */
  readonly streamPrefixes: readonly string[] | 'all';
  /** Upper bound of events in one item. Default 500. */
  readonly maxBatch?: number;
  readonly signal: AbortSignal;
}

/**
 * Ordered committed events per stream, resumable from a position, delivered at least once.
 *
 * Guarantees: events of one stream come in order without holes; after a lost connection the feed goes
 * on from the last item it yielded, with back-off, for as long as `signal` is not aborted; the next
 * item is fetched only when the consumer asks for it, beyond a bounded buffer (back-pressure).
 *
 * Omissions: no acknowledgements (the consumer saves its position), no order between streams that a
 * consumer may rely on, no exactly-once: consumers are guarded by revision.
 *
 * Errors: none while the store is away. `Fault` `stopping` once the connection was closed under the feed.
 */
export interface EventFeed {
  subscribe(options: FeedOptions): AsyncIterable<FeedItem>;

  /** Position of the last event of the log, or null while it is empty: for the lag in readiness. */
  head(): Promise<GlobalPosition | null>;
}
