import type { TraceContext } from './trace-context.ts';

/** A span that has ended. */
export interface EndedSpan {
  readonly name: string;
  readonly kind: 'internal' | 'client' | 'server';
  readonly context: TraceContext;
  /** 16 hex digits; null for the first span of a trace. */
  readonly parentSpanId: string | null;
  /** In Unix milliseconds. */
  readonly startedMs: number;
  readonly endedMs: number;
  /** Null and undefined are left out. */
  readonly attributes: Readonly<Record<string, string | number | boolean | readonly string[] | null | undefined>>;
  /** The value of `error.type`, of which there are few; null for a success. */
  readonly error: string | null;
}

/**
 * Port: where spans go.
 *
 * Guarantees: `record` returns at once and never throws. Memory is bounded: what cannot be exported in time is dropped.
 * Spans of traces that the caller does not record are dropped.
 *
 * Omissions: no span is exported for certain; a span that is recorded twice is exported twice.
 */
export interface Spans {
  record(span: EndedSpan): void;
  /** Exports what was recorded, for as long as a few seconds. */
  close(): Promise<void>;
}
