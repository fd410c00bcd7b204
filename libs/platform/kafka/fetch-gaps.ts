import type { Consumer } from 'kafkajs';

/** Kafka cannot delete a topic and make it again so quickly. */
const NO_GAP_MS = 100;

/**
 * Watches whether a consumer asks its brokers for news all the time: while a fetch waits at a broker, it hears at once
 * of a topic that is deleted there. Between two fetches it hears nothing: while its handlers are busy, or a broker
 * cannot be reached, or the process was paused.
 */
export class FetchGaps {
  readonly #lastMs = new Map<number, number>();
  /** By broker, the answers there were of any broker before the fetch that is under way. */
  readonly #before = new Map<number, number>();
  #answers = 0;
  #answeredMs = 0;

  /** @param onGap called before a fetch that comes late, in time to change what it asks for */
  constructor(consumer: Consumer, onGap: () => void) {
    const { FETCH, FETCH_START, REQUEST } = consumer.events;
    consumer.on(FETCH_START, ({ payload: { nodeId } }) => {
      this.#before.set(nodeId, this.#answers);
      if (Date.now() - (this.#lastMs.get(nodeId) ?? 0) > NO_GAP_MS) onGap();
    });
    consumer.on(REQUEST, ({ payload: { apiName } }) => {
      if (apiName !== 'Fetch') return;
      this.#answers++;
      this.#answeredMs = Date.now();
    });
    // It is told of a fetch as well that broke off, as one without news.
    consumer.on(FETCH, ({ payload: { nodeId } }) => {
      if (this.#answers !== this.#before.get(nodeId)) this.#lastMs.set(nodeId, Date.now());
    });
  }

  /** When a broker has last answered; 0 for never. */
  get answeredMs(): number {
    return this.#answeredMs;
  }
}
