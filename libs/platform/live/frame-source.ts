import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

import type { EventFrame, LiveValues } from './frames.ts';

export interface FramesOptions {
  /** Cancels the read of the event store when it aborts; the iteration then throws its reason. */
  readonly signal?: AbortSignal;
  /** Called before each page: its approximate size; it has at least one frame. Default: 1 MiB. */
  readonly pageBytes?: () => number;
}

/** The streams of one category, and what their subscribers receive. */
export interface LiveSource {
  readonly log: FrameSource;
  /** Values that are not in the log. Default: none. */
  readonly values?: readonly LiveValues[];
  /** Events may follow a last one: a crawl runs again after its end. Default: the last event is final. */
  readonly continues?: boolean;
}

/**
 * Port: the events of streams as frames, from the log.
 *
 * Guarantees: frames are contiguous, ascending, and the same bytes as those that are published live. Throws
 * `store_unavailable` faults.
 */
export interface FrameSource {
  /** Category of the streams: `channel` for `channel-<id>`. */
  readonly category: string;
  /** Sequence of the newest event; null if the organization has no such stream. */
  head(organizationId: EntityId, id: EntityId): Promise<ChannelSequence | null>;
  /** @throws StreamGone if the event after `after` was deleted */
  refuseDeleted(id: EntityId, after: number, head: number): Promise<void>;
  /**
   * Pages from `after + 1` up to the end at the time of the read.
   *
   * @param after a sequence of the stream, or 0
   * @throws StreamGone where the next event was deleted
   */
  framesAfter(
    organizationId: EntityId,
    id: EntityId,
    after: number,
    options?: FramesOptions,
  ): AsyncIterable<readonly EventFrame[]>;
}
