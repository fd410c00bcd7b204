import { HttpError, ConcurrencyLimit } from '#libs/platform/http/index.ts';
import { FairSemaphore } from '#libs/platform/lifecycle/index.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import type { TopicSubscriptions } from '#libs/platform/redis/index.ts';
import type { Metrics } from '#libs/platform/telemetry/index.ts';

const TICK_MS = 1_000;
/** Reads of the log at a time, for streams that catch up. */
const CATCHING_UP = 4;

export interface EventStreamsParts {
  readonly store: Pick<EventStore, 'readStream'>;
  readonly topics: Pick<TopicSubscriptions, 'subscribe'>;
  readonly log: { warn(fields: object, message: string): void };
  readonly metrics: Pick<Metrics, 'observedGauge'>;
}

/** A stream that is open. Called every second. */
interface Ticking {
  onTick(ticks: number): void;
}

/** The open event streams of entities in this process: their number is bounded, and they share one clock. */
export class EventStreams {
  readonly parts: EventStreamsParts;
  readonly catchUps = new FairSemaphore({ permits: CATCHING_UP });
  readonly limit = new ConcurrencyLimit({
    max: 5_000,
    maxOfKey: 100,
    refusal: () =>
      new HttpError(429, 'too_many_event_streams', 'Too many event streams are open', { 'retry-after': '5' }),
  });
  readonly #open = new Set<Ticking>();
  #ticks = 0;
  #clock: NodeJS.Timeout | undefined;

  constructor(parts: EventStreamsParts) {
    this.parts = parts;
    parts.metrics.observedGauge(
      'entity_event_streams',
      'Open event streams of single entities, such as crawls',
      () => this.#open.size,
    );
  }

  /** Ticks of the clock so far. */
  get now(): number {
    return this.#ticks;
  }

  add(stream: Ticking): void {
    this.#open.add(stream);
    this.#clock ??= setInterval(() => {
      this.#ticks += 1;
      for (const one of this.#open) one.onTick(this.#ticks);
    }, TICK_MS).unref();
  }

  remove(stream: Ticking): void {
    this.#open.delete(stream);
    if (this.#open.size > 0) return;
    clearInterval(this.#clock);
    this.#clock = undefined;
  }
}
