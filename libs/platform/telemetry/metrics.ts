import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';
import { RouteTimings } from './route-timings.ts';

export type Labels = Readonly<Record<string, string>>;

/** A value, or one for each combination of labels. */
type Observed = number | readonly (readonly [Labels, number])[];

export type Metrics = ReturnType<typeof createMetrics>;

/**
 * The metrics of a process. Names are in snake_case and end with the unit (`…_seconds`, `…_total`); they get the prefix
 * `parley_`. A repeated name returns the same metric. Labels have few values: never an id.
 *
 * @param options.processMetrics adds CPU, memory, event loop and garbage collection; default true
 */
export function createMetrics({ processMetrics = true }: { processMetrics?: boolean } = {}) {
  const registry = new Registry();
  if (processMetrics) collectDefaultMetrics({ register: registry });
  const http = new RouteTimings();
  const optionsOf = (name: string, help: string, labelNames: readonly string[]) => ({
    name: `parley_${name}`,
    help,
    labelNames: [...labelNames],
    registers: [registry],
  });

  return {
    http,
    contentType: registry.contentType,
    counter(name: string, help: string, labelNames: readonly string[] = []) {
      const known = registry.getSingleMetric(`parley_${name}`);
      const counter = known instanceof Counter ? known : new Counter(optionsOf(name, help, labelNames));
      return { add: (labels: Labels = {}, by = 1): void => counter.inc({ ...labels }, by) };
    },
    gauge(name: string, help: string, labelNames: readonly string[] = []) {
      const known = registry.getSingleMetric(`parley_${name}`);
      const gauge = known instanceof Gauge ? known : new Gauge(optionsOf(name, help, labelNames));
      return { set: (value: number, labels: Labels = {}): void => gauge.set({ ...labels }, value) };
    },
    /**
     * A gauge that is read by each scrape: lag, queue length, connections. Must not block. A repeated name keeps the
     * first reader.
     */
    observedGauge(
      name: string,
      help: string,
      read: () => Observed | Promise<Observed>,
      labelNames: readonly string[] = [],
    ): void {
      if (registry.getSingleMetric(`parley_${name}`) !== undefined) return;
      // oxlint-disable-next-line no-new -- a metric registers itself
      new Gauge({
        ...optionsOf(name, help, labelNames),
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
    /** All metrics in Prometheus' text format. */
    scrape: async (): Promise<string> => `${await registry.metrics()}${http.exposition()}`,
  };
}
