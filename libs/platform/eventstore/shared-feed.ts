import type { GlobalPosition } from '#libs/kernel/event.ts';
import type { StoredEvent } from './event-store.ts';

/** How far one share of the streams has been brought. Two things are said, and each is true without the other. */
export interface ShareMark {
  /** Names the share. */
  readonly share: string;
  /**
   * Where to go on: whatever lies before it in the share was delivered. Of the feed's own making; what is before the
   * first `:` is a whole number, and greater the further it is.
   */
  readonly mark: string;
  /** Every event up to it that belongs into the share was delivered. */
  readonly position: GlobalPosition;
}

/** What a share had when it was looked at: its name, and the mark at its end. */
export type ShareEnd = Omit<ShareMark, 'position'>;

export type SharedFeedItem =
  /** In order per stream, and no order between streams. */
  | { readonly kind: 'events'; readonly events: readonly [StoredEvent, ...StoredEvent[]] }
  /** Of every share that this subscriber has from now on, where it goes on; of the others it has none any more. */
  | { readonly kind: 'assigned'; readonly marks: readonly ShareMark[] }
  /** All items before this one have brought these shares so far. `behind`: the messages known to follow. */
  | { readonly kind: 'reached'; readonly marks: readonly (ShareMark & { readonly behind: number })[] }
  /** The end of all shares, as they were when they were assigned. */
  | { readonly kind: 'caught-up' }
  /** The last item: what follows a mark cannot be had here. It has to be read from the log. */
  | { readonly kind: 'lost'; readonly reason: string };

export interface SharedFeedOptions {
  /** Where to go on, asked each time shares are assigned. Errors: they end the membership, and it is tried again. */
  readonly marks: () => Promise<readonly ShareMark[]>;
  /** Streams to deliver, by prefix. */
  readonly streamPrefixes: readonly string[];
  /** Upper bound of events in one item. Default 500. */
  readonly maxBatch?: number;
  readonly signal: AbortSignal;
}

/**
 * Committed events, dealt out in shares to all who subscribe: a stream lies in one share, and a share is one
 * subscriber's at a time. When one comes or goes, or falls silent, its shares go to others.
 *
 * Guarantees: of each stream an event is delivered for the first time only after all events before it; the next item
 * is fetched only when the consumer asks for it; asking for it says that the one before is dealt with.
 *
 * Omissions: events come again, also after later ones of their stream, and one that lost a share may for a moment go
 * on with it beside its successor: consumers are guarded by revision. The feed remembers nothing that it relies on:
 * whoever subscribes keeps the marks, and gives them back.
 *
 * Errors: none; what is away is waited for, and `lost` once that has taken too long.
 */
export interface SharedFeed {
  subscribe(options: SharedFeedOptions): AsyncIterable<SharedFeedItem>;

  /**
   * The present end of every share. Whoever then applies the log up to its end, as that is after this call, may go on
   * from these marks. Null while there is nothing to go on from: the feed is away, or has not been filled yet.
   */
  ends(): Promise<readonly ShareEnd[] | null>;
}
