/** Logs, metrics and traces, for every role. */
export { createLogger } from './logger.ts';
export { createMetrics } from './metrics.ts';
export type { Labels, Metrics } from './metrics.ts';
export { otlpSpans } from './spans.otlp.ts';
export type { OtlpOptions } from './spans.otlp.ts';
export {
  type EndedSpan,
  type Spans,
  newSpanId,
  newTraceId,
  parseTraceparent,
  traceparentFor,
  type TraceContext,
} from './spans.ts';
