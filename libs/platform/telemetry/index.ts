/** Logs and metrics, for every role. */
export { createLogger, loggerOptions, redact } from './logger.ts';
export { createMetrics } from './metrics.ts';
export type { Count, Labels, Level, Metrics } from './metrics.ts';
export type { RouteTiming, RouteTimings } from './route-timings.ts';
