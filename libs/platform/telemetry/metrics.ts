import { collectDefaultMetrics, Counter, Gauge, Registry } from '@prometheus-io/client';

export type Labels = Readonly<Record<string, string>>;

/** A value, or one for each combination of labels. */
type Observed = number | readonly (readonly [Labels, number])[];

type Reader = () => Observed | Promise<Observed>;
type Observation = [name: string, help: string, read: Reader, labelNames?: readonly string[]];

export type Metrics = ReturnType<typeof createMetrics>;

export interface MetricsOptions {
  /** Adds processor time, memory, event loop and garbage collection. Default: true. */
  readonly processMetrics?: boolean;
  /** Labels of `parley_build_info`. Default: no such metric. */
  readonly build?: { readonly version: string; readonly revision: string };
}

/**
 * How often the utilization of the event loop is read. After a pause of the process, or where a test sets the clock forward,
 * the library adds a sample for each interval that was missed: with its own 100 ms, a day kept a process busy for a minute.
 */
const UTILIZATION_MS = 10_000;

/**
 * The metrics of a process. Names are in snake_case and end with the unit (`…_seconds`, `…_total`); they get the prefix
 * `parley_`. A repeated name returns the same metric. Labels have few values: never an id.
 */
export function createMetrics({ processMetrics = true, build }: MetricsOptions = {}) {
  const registry = new Registry();
  if (processMetrics) collectDefaultMetrics({ register: registry, eventLoopUtilizationTimeout: UTILIZATION_MS });
  const http = new RouteTimings();
  const optionsOf = (name: string, help: string, labelNames: readonly string[]) => ({
    name: `parley_${name}`,
    help,
    labelNames: [...labelNames],
    registers: [registry],
  });
  function observe(Metric: typeof Gauge | typeof Counter, ...[name, help, read, labelNames = []]: Observation): void {
    if (registry.getSingleMetric(`parley_${name}`) !== undefined) return;
    // oxlint-disable-next-line no-new -- a metric registers itself
    new Metric({
      ...optionsOf(name, help, labelNames),
      async collect() {
        const observed = await valuesOf(read, labelNames);
        this.reset();
        // A gauge without a value is NaN; a counter then has none.
        const known = Metric === Gauge ? observed : observed.filter(([, value]) => value >= 0);
        for (const [labels, value] of known) this.inc({ ...labels }, value);
      },
    });
  }
  if (build !== undefined) {
    const help = 'Always 1; its labels name the version of Parley, and the revision of its source';
    new Gauge(optionsOf('build_info', help, Object.keys(build))).set({ ...build }, 1);
  }

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
    observedGauge(...metric: Observation): void {
      observe(Gauge, ...metric);
    },
    /** Observes a count since the start of the process, which its owner keeps. */
    observedCounter(...metric: Observation): void {
      observe(Counter, ...metric);
    },
    /** All metrics in Prometheus' text format. */
    scrape: async (): Promise<string> => `${await registry.metrics()}${http.exposition()}`,
  };
}

/** A reader that fails must not fail the scrape. */
async function valuesOf(read: Reader, labelNames: readonly string[]): Promise<readonly (readonly [Labels, number])[]> {
  const observed = await Promise.resolve()
    .then(read)
    .catch(() => (labelNames.length === 0 ? Number.NaN : []));
  return typeof observed === 'number' ? [[{}, observed]] : observed;
}

const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const NAME = 'parley_http_request_duration_seconds';
/** Index of the sum, after the bucket without a bound. */
const SUM = BOUNDS.length + 1;

/**
 * Durations of HTTP requests by route and status. The library's histogram hashes its labels at each observation; here a
 * route looks up its row once, at the start, and an observation is a few additions.
 */
class RouteTimings {
  readonly #rows = new Map<string, Map<number, Float64Array>>();

  /** The row of a route's pattern. Never a URL: the number of labels must be bounded. */
  route(method: string, pattern: string) {
    const labels = `method="${method}",route="${pattern.replace(/["\\\n]/g, '_')}"`;
    const byStatus = this.#rows.get(labels) ?? new Map<number, Float64Array>();
    this.#rows.set(labels, byStatus);
    return {
      observe(status: number, milliseconds: number): void {
        let row = byStatus.get(status);
        if (row === undefined) byStatus.set(status, (row = new Float64Array(SUM + 1)));
        const seconds = milliseconds / 1000;
        let bucket = 0;
        while (bucket < BOUNDS.length && seconds > (BOUNDS[bucket] ?? 0)) bucket += 1;
        row[bucket] = (row[bucket] ?? 0) + 1;
        row[SUM] = (row[SUM] ?? 0) + seconds;
      },
    };
  }

  /** Prometheus text exposition. */
  exposition(): string {
    const lines = [`# HELP ${NAME} Time from the head of a request to its answer`, `# TYPE ${NAME} histogram`];
    for (const [labels, byStatus] of this.#rows) {
      for (const [status, row] of byStatus) {
        const all = `${labels},status="${status}"`;
        let total = 0;
        for (const [index, bound] of [...BOUNDS, '+Inf'].entries()) {
          total += row[index] ?? 0;
          lines.push(`${NAME}_bucket{${all},le="${bound}"} ${total}`);
        }
        lines.push(`${NAME}_sum{${all}} ${row[SUM]}`, `${NAME}_count{${all}} ${total}`);
      }
    }
    return `${lines.join('\n')}\n`;
  }
}
