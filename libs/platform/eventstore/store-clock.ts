import type { Timestamp } from '#libs/kernel/clock.ts';
import type { StreamEvent } from '#libs/kernel/event.ts';

import type { EventStore } from './event-store.ts';
import { textOf } from './event-codec.ts';

/** How far the clock of this process may be ahead of the event store's before its times are corrected. */
const MAX_AHEAD_MS = 5_000;
const MEASURE_EVERY_MS = 60_000;
const VALID_MS = 120_000;
/** A larger change of the difference between the system clock and a monotonic one means that the system clock was set. */
const MAX_STEP_MS = 1_000;

interface Measurement {
  /** 0 where the clock is right, or behind. */
  readonly aheadMs: number;
  readonly takenMs: number;
  readonly offsetMs: number;
}

/**
 * Bounds how far the times of this process are ahead of the event store's clock; one for the whole process. An event
 * read back after its append carries the time at which the store wrote it; a clock that showed a later time before the
 * append is ahead.
 *
 * Guarantees: a correction is used for two minutes after its measurement, and not after this process's clock was set.
 *
 * Omissions: what is appended before the first measurement, or more than two minutes after the last one, is not bounded.
 * A clock that is behind needs no correction: the store refuses appends whose deadline has passed, and times never go
 * back in a stream.
 */
export class StoreClock {
  readonly #store: Pick<EventStore, 'readStream'>;
  readonly #onAhead: ((aheadMs: number) => void) | undefined;
  #measured: Measurement | undefined;
  #measureAtMs = -Infinity;

  constructor(store: Pick<EventStore, 'readStream'>, onAhead?: (aheadMs: number) => void) {
    this.#store = store;
    this.#onAhead = onAhead;
  }

  /** The time of the event store's clock, in Unix milliseconds; null while it is unknown. */
  get nowMs(): number | null {
    const measured = this.#valid();
    return measured === undefined ? null : Date.now() - measured.aheadMs;
  }

  /** Corrects a time by this process's clock, if that clock is known to be too far ahead of the event store's. */
  corrected(at: Timestamp): Timestamp {
    const aheadMs = this.#valid()?.aheadMs ?? 0;
    return aheadMs === 0 ? at : new Date(Date.parse(at) - aheadMs).toISOString();
  }

  /**
   * Measures at most once a minute, and after this process's clock was set.
   *
   * @param sentAtMs this process's clock before the event was appended
   */
  async measure(stream: string, { revision, metadata }: MeasuredEvent, sentAtMs: number): Promise<void> {
    const takenMs = performance.now();
    const offsetMs = Date.now() - takenMs;
    const wasSet = this.#measured !== undefined && isStep(this.#measured.offsetMs, offsetMs);
    if (!wasSet && takenMs < this.#measureAtMs) return;
    this.#measureAtMs = takenMs + MEASURE_EVERY_MS;
    try {
      for await (const stored of this.#store.readStream(stream, { from: revision, limit: 1 })) {
        // The store also acknowledges events that an earlier request for the same command has appended.
        if (textOf(stored.metadata, 'at') !== metadata.at) continue;
        const aheadMs = sentAtMs - stored.createdMs;
        this.#measured = { aheadMs: aheadMs > MAX_AHEAD_MS ? aheadMs : 0, takenMs, offsetMs };
        if (aheadMs > MAX_AHEAD_MS) this.#onAhead?.(aheadMs);
      }
    } catch {
      // The next append measures again.
      this.#measureAtMs = -Infinity;
    }
  }

  #valid(): Measurement | undefined {
    const measured = this.#measured;
    if (measured === undefined) return undefined;
    const nowMs = performance.now();
    if (nowMs - measured.takenMs > VALID_MS || isStep(measured.offsetMs, Date.now() - nowMs)) return undefined;
    return measured;
  }
}

type MeasuredEvent = Pick<StreamEvent, 'revision' | 'metadata'>;

function isStep(beforeMs: number, nowMs: number): boolean {
  return Math.abs(nowMs - beforeMs) > MAX_STEP_MS;
}
