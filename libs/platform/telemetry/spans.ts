import { randomUUID } from 'node:crypto';

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

/** A span in a trace, as W3C Trace Context names it. */
export interface TraceContext {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly spanId: string;
  /** Whether the caller records the trace. */
  readonly isSampled: boolean;
}

const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})$/;

/** @returns null for anything but a valid `traceparent` of version 00 */
export function parseTraceparent(text: string | undefined): TraceContext | null {
  const [, traceId, spanId, flags] = (text !== undefined && TRACEPARENT.exec(text)) || [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function traceparentFor({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
}

/** 32 hex digits, most of them random. Node reads the random bytes of many UUIDs at once. */
export function newTraceId(): string {
  return randomUUID().replaceAll('-', '');
}

/** 16 hex digits, all random. */
export function newSpanId(): string {
  const id = newTraceId();
  return id.slice(0, 8) + id.slice(-8);
}
