const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const NAME = 'parley_http_request_duration_seconds';
/** Index of the sum, after the bucket without a bound. */
const SUM = BOUNDS.length + 1;

/**
 * Durations of HTTP requests by route and status. The library's histogram hashes its labels at each observation; here a
 * route looks up its row once, at the start, and an observation is a few additions.
 */
export class RouteTimings {
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
