/**
 * A quarter of the time in which one broker deleted a topic, created it again and took messages. Not 0: a fetch after a gap
 * does not wait for new messages, and a turn of the event loop lies between any two.
 */
const NO_GAP_MS = 20;

/**
 * Detects times during which a consumer has no fetch waiting at a broker: while its handlers are busy, a broker cannot be
 * reached, or the process is paused. Only a waiting fetch fails when its topic is deleted, so after a gap the topic may
 * have been deleted and created again.
 */
export class FetchGaps {
  readonly #onGap: () => void;
  readonly #nowMs: () => number;
  /** By broker: the end of its last fetch. */
  readonly #endedAtMs = new Map<number, number>();
  /** Brokers that have not answered the current fetch. */
  readonly #unanswered = new Set<number>();
  /** Brokers that answered their last fetch. */
  readonly #answering = new Set<number>();

  /** @param onGap called before the next fetch, so that it can change the offset to fetch from */
  constructor(onGap: () => void, nowMs: () => number = Date.now) {
    this.#onGap = onGap;
    this.#nowMs = nowMs;
  }

  started(broker: number): void {
    this.#unanswered.add(broker);
    const nowMs = this.#nowMs();
    if (nowMs - (this.#endedAtMs.get(broker) ?? nowMs) > NO_GAP_MS) this.#onGap();
  }

  answered(broker: number): void {
    this.#unanswered.delete(broker);
  }

  /** kafkajs reports the end of every fetch alike, also of a failed one and of one for no partitions. */
  ended(broker: number): void {
    this.#endedAtMs.set(broker, this.#nowMs());
    if (!this.#unanswered.has(broker)) this.#answering.add(broker);
    // Only once: a broker without partitions of this member never answers.
    else if (this.#answering.delete(broker)) this.#onGap();
  }
}
