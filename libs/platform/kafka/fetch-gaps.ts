/** Kafka cannot delete a topic and make it again so quickly. */
const NO_GAP_MS = 100;

/**
 * Watches whether a consumer asks its brokers for news all the time. While a fetch waits at a broker, it hears at once
 * of a topic that is deleted there. Between two fetches it hears nothing: while its handlers are busy, or a broker
 * cannot be reached, or the process was paused.
 */
export class FetchGaps {
  readonly #onGap: () => void;
  readonly #nowMs: () => number;
  /** By broker, when a fetch has last come to its end. */
  readonly #endedMs = new Map<number, number>();
  /** Brokers that have not answered the fetch that is under way. */
  readonly #silent = new Set<number>();
  /** Brokers that have answered their last fetch. */
  readonly #answering = new Set<number>();

  /** @param onGap called before the next fetch, in time to change what it asks for */
  constructor(onGap: () => void, nowMs: () => number = Date.now) {
    this.#onGap = onGap;
    this.#nowMs = nowMs;
  }

  begun(broker: number): void {
    this.#silent.add(broker);
    const nowMs = this.#nowMs();
    if (nowMs - (this.#endedMs.get(broker) ?? nowMs) > NO_GAP_MS) this.#onGap();
  }

  answered(broker: number): void {
    this.#silent.delete(broker);
  }

  /** Also of a fetch that broke off, or that asked for nothing: kafkajs tells of all alike. */
  ended(broker: number): void {
    this.#endedMs.set(broker, this.#nowMs());
    if (!this.#silent.has(broker)) this.#answering.add(broker);
    // Once: of one that is not asked for anything any more there is nothing to miss.
    else if (this.#answering.delete(broker)) this.#onGap();
  }
}
