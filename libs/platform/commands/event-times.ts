import type { Timestamp } from '#libs/kernel/clock.ts';
import type { StreamEvent } from '#libs/kernel/event.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';

import { textOf } from './repeated-command.ts';

/** The later one; null for an event without a time. Both are in UTC with milliseconds, so they sort as text. */
export function latestTime<T extends Timestamp | null>(one: Timestamp | null, other: T): Timestamp | T {
  return one !== null && (other === null || one > other) ? one : other;
}

/** How far the clock of this process may be ahead of the event store's before its times are corrected. */
const MAX_AHEAD_MS = 5_000;
const MEASURE_EVERY_MS = 60_000;

/**
 * Bounds how far the times of events are ahead of the event store's clock. An event read back after its append
 * carries the time at which the store wrote it; a clock that showed a later time before the append is ahead.
 *
 * Omissions: what is appended before the first measurement is not bounded. A clock that is behind needs no
 * correction: the store refuses appends whose deadline has passed, and times never go back in a stream.
 */
export class StoreClock {
  readonly #store: Pick<EventStore, 'readStream'>;
  readonly #onAhead: ((aheadMs: number) => void) | undefined;
  #aheadMs = 0;
  #measureAtMs = -Infinity;

  constructor(store: Pick<EventStore, 'readStream'>, onAhead?: (aheadMs: number) => void) {
    this.#store = store;
    this.#onAhead = onAhead;
  }

  /** The time in the event store's clock, where this process's clock is too far ahead of that. */
  corrected(at: Timestamp): Timestamp {
    return this.#aheadMs === 0 ? at : new Date(Date.parse(at) - this.#aheadMs).toISOString();
  }

  /** Measures at most once a minute. @param sentAtMs this process's clock before the event was appended */
  async measure(stream: string, { revision, metadata }: StreamEvent, sentAtMs: number): Promise<void> {
    if (performance.now() < this.#measureAtMs) return;
    this.#measureAtMs = performance.now() + MEASURE_EVERY_MS;
    try {
      for await (const stored of this.#store.readStream(stream, { from: revision, limit: 1 })) {
        // The store also acknowledges events that an earlier request for the same command has appended.
        if (textOf(stored.metadata, 'at') !== metadata.at) continue;
        const aheadMs = sentAtMs - stored.createdMs;
        this.#aheadMs = aheadMs > MAX_AHEAD_MS ? aheadMs : 0;
        if (this.#aheadMs > 0) this.#onAhead?.(aheadMs);
      }
    } catch {
      // The next append measures again.
      this.#measureAtMs = -Infinity;
    }
  }
}
