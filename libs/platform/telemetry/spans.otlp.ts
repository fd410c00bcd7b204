import type * as Api from '@opentelemetry/api';
import type * as Sdk from '@opentelemetry/sdk-trace';

import { redacted } from '#libs/kernel/secrets.ts';

import type { Metrics } from './metrics.ts';
import type { EndedSpan, Spans } from './spans.ts';

export interface OtlpOptions {
  /** `http://127.0.0.1:4318/v1/traces` */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly protocol: 'http/protobuf' | 'http/json';
  /** Of the resource, such as `service.name`. */
  readonly attributes: Readonly<Record<string, string>>;
  /** How long `close` waits for the collector. Default: 3,000. */
  readonly closeTimeoutMs?: number;
}

interface Parts {
  readonly log: { warn(fields: object, message: string): void };
  readonly metrics: Pick<Metrics, 'counter'>;
}

/** Spans that wait for their export. */
const MAX_WAITING = 2_048;
const EXPORT_TIMEOUT_MS = 10_000;
const CLOSE_TIMEOUT_MS = 3_000;
/** Between two log lines about failed exports. */
const WARN_EVERY_MS = 60_000;

/** Exports spans over OTLP/HTTP. The libraries are loaded here, so a process without an endpoint never loads them. */
export function otlpSpans(options: OtlpOptions, parts: Parts): Spans {
  const early: EndedSpan[] = [];
  let exporter: Exporter | undefined;
  const loading = loadExporter(options, parts).then((loaded) => {
    exporter = loaded;
    for (const span of early.splice(0)) loaded.record(span);
  });
  loading.catch((error: unknown) => parts.log.warn({ err: error }, 'traces: the exporter could not be loaded'));
  return {
    record(span) {
      if (!span.context.isSampled) return;
      if (exporter !== undefined) exporter.record(span);
      else if (early.length < MAX_WAITING) early.push(span);
    },
    async close() {
      const over = new Promise<void>((resolve) =>
        setTimeout(resolve, options.closeTimeoutMs ?? CLOSE_TIMEOUT_MS).unref(),
      );
      // Spans that are still on their way then are lost: a collector that hangs must not hold up the stop.
      await Promise.race([over, loading.then(() => exporter?.close()).catch(() => undefined)]);
    },
  };
}

interface Exporter {
  record(span: EndedSpan): void;
  close(): Promise<void>;
}

async function loadExporter(options: OtlpOptions, parts: Parts): Promise<Exporter> {
  const [api, sdk, { resourceFromAttributes }, { OTLPTraceExporter }] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/resources'),
    options.protocol === 'http/json'
      ? import('@opentelemetry/exporter-trace-otlp-http')
      : import('@opentelemetry/exporter-trace-otlp-proto'),
  ]);
  const { url, headers, attributes } = options;
  const ids = new GivenIds();
  const otlp = new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis: EXPORT_TIMEOUT_MS });
  const provider = new sdk.TracerProvider({
    idGenerator: ids,
    // Whether a trace is recorded is its caller's decision, which `record` has looked at.
    sampler: new sdk.AlwaysOnSampler(),
    resource: resourceFromAttributes(attributes),
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter: reporting(otlp, parts),
        maxQueueSize: MAX_WAITING,
        exportTimeoutMillis: EXPORT_TIMEOUT_MS,
      }),
    ],
  });
  const tracer = provider.getTracer('parley');
  return {
    record: (span) => record(api, { tracer, ids }, span),
    close: () => provider.shutdown(),
  };
}

/** The ids of the span that is created next. */
class GivenIds implements Sdk.IdGenerator {
  context: EndedSpan['context'] | undefined;

  generateTraceId(): string {
    return this.context?.traceId ?? '';
  }

  generateSpanId(): string {
    return this.context?.spanId ?? '';
  }
}

function record(
  api: typeof Api,
  { tracer, ids }: { readonly tracer: Api.Tracer; readonly ids: GivenIds },
  { name, kind, context, parentSpanId, startedMs, endedMs, attributes, error }: EndedSpan,
): void {
  ids.context = context;
  const parent =
    parentSpanId === null
      ? api.ROOT_CONTEXT
      : api.trace.setSpanContext(api.ROOT_CONTEXT, {
          traceId: context.traceId,
          spanId: parentSpanId,
          traceFlags: api.TraceFlags.SAMPLED,
          isRemote: true,
        });
  const kinds = { internal: api.SpanKind.INTERNAL, client: api.SpanKind.CLIENT, server: api.SpanKind.SERVER };
  const span = tracer.startSpan(redacted(name), { kind: kinds[kind], startTime: startedMs }, parent);
  for (const [key, value] of Object.entries({ ...attributes, 'error.type': error })) {
    if (value === null || value === undefined) continue;
    if (typeof value === 'object')
      span.setAttribute(
        key,
        [...value].map((one: string) => redacted(one)),
      );
    else span.setAttribute(key, typeof value === 'string' ? redacted(value) : value);
  }
  if (error !== null) span.setStatus({ code: api.SpanStatusCode.ERROR, message: redacted(error) });
  span.end(endedMs);
}

/** Counts and logs exports that fail; the library would say nothing. */
function reporting(exporter: Sdk.SpanExporter, { log, metrics }: Parts): Sdk.SpanExporter {
  const exported = metrics.counter(
    'trace_spans_exported_total',
    'Spans that were sent to the collector, by the outcome',
    ['outcome'],
  );
  let warnedAt = -Infinity;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const hasFailed = result.code !== 0;
        exported.add({ outcome: hasFailed ? 'failed' : 'exported' }, spans.length);
        if (hasFailed && performance.now() - warnedAt > WARN_EVERY_MS) {
          warnedAt = performance.now();
          log.warn({ err: result.error, spans: spans.length }, 'traces: spans could not be exported');
        }
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
  };
}
