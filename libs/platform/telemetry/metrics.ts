import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';
import { createRouteTimings } from './route-timings.ts';
import type { RouteTimings } from './route-timings.ts';

/** A value, or one for each combination of labels. */
export type Observed = number | readonly (readonly [Labels, number])[];

export type Labels = Readonly<Record<string, string>>;

export interface Count {
  /** Adds `by` (1 by default). */
  add(labels?: Labels, by?: number): void;
}

export interface Level {
  set(value: number, labels?: Labels): void;
}

/**
 * The metrics of a process. Names are in snake_case and end with the unit (`…_seconds`, `…_total`); they get the prefix
 * `parley_`. A repeated name returns the same metric. Labels have few values: never an id.
 */
export interface Metrics {
  counter(name: string, help: string, labelNames?: readonly string[]): Count;
  gauge(name: string, help: string, labelNames?: readonly string[]): Level;
  /**
   * A gauge that is read by each scrape: lag, queue length, connections. Must not block. A repeated name keeps the first
   * reader.
   */
  observedGauge(
    name: string,
    help: string,
    read: () => Observed | Promise<Observed>,
    labelNames?: readonly string[],
  ): void;
  readonly http: RouteTimings;
  /** All metrics in Prometheus' text format. */
  scrape(): Promise<string>;
  readonly contentType: string;
}

const PREFIX = 'parley_';

/** @param options.processMetrics adds CPU, memory, event loop and garbage collection; default true */
export function createMetrics(options: { processMetrics?: boolean } = {}): Metrics {
  const registry = new Registry();
  const registers = [registry];
  if (options.processMetrics ?? true) collectDefaultMetrics({ register: registry });
  const http = createRouteTimings();

  return {
    counter(name, help, labelNames = []) {
      const known = registry.getSingleMetric(PREFIX + name);
      const counter =
        known instanceof Counter
          ? known
          : new Counter({ name: PREFIX + name, help, labelNames: [...labelNames], registers });
      return { add: (labels = {}, by = 1) => counter.inc({ ...labels }, by) };
    },
    gauge(name, help, labelNames = []) {
      const known = registry.getSingleMetric(PREFIX + name);
      const gauge =
        known instanceof Gauge
          ? known
          : new Gauge({ name: PREFIX + name, help, labelNames: [...labelNames], registers });
      return { set: (value, labels = {}) => gauge.set({ ...labels }, value) };
    },
    observedGauge(name, help, read, labelNames = []) {
      if (registry.getSingleMetric(PREFIX + name) !== undefined) return;
      // oxlint-disable-next-line no-new -- a metric registers itself
      new Gauge({
        name: PREFIX + name,
        help,
        labelNames: [...labelNames],
        registers,
        async collect() {
          // A failing reader must not fail the scrape.
          const none = labelNames.length === 0 ? Number.NaN : [];
          const observed = await Promise.resolve()
            .then(read)
            .catch(() => none);
          this.reset();
          if (typeof observed === 'number') this.set(observed);
          else for (const [labels, value] of observed) this.set({ ...labels }, value);
        },
      });
    },
    http,
    scrape: async () => `${await registry.metrics()}${http.exposition()}`,
    contentType: registry.contentType,
  };
}
