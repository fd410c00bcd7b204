/** Logs and metrics, for every role. */
export { createLogger } from './logger.ts';
export { createMetrics } from './metrics.ts';
export type { Labels, Metrics } from './metrics.ts';
