/** A collector on loopback that speaks OTLP/HTTP, with JSON and with protobuf, and misbehaves on request. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

import protobuf from 'protobufjs';

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  /** As the protocol numbers them: 1 internal, 2 server, 3 client. */
  readonly kind: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Record<string, unknown>;
  readonly isError: boolean;
}

export interface OtlpReceiver {
  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly endpoint: string;
  readonly spans: ReceivedSpan[];
  /** Headers of the requests, and attributes of their resources, in their order. */
  readonly requests: { readonly headers: IncomingHttpHeaders; readonly resource: Record<string, unknown> }[];
  /** `hang` never answers, a number is the status of each answer. */
  behave(how: 'well' | 'hang' | number): void;
  stop(): Promise<void>;
}

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const requests: OtlpReceiver['requests'] = [];
  let how: 'well' | 'hang' | number = 'well';
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (request.method !== 'POST' || request.url !== '/v1/traces') return response.writeHead(404).end();
      const { resourceSpans } = exportRequestOf(request.headers['content-type'], Buffer.concat(chunks));
      for (const { resource, scopeSpans } of resourceSpans) {
        requests.push({ headers: request.headers, resource: valuesOf(resource.attributes) });
        if (how === 'well') for (const { spans: sent } of scopeSpans) spans.push(...sent.map(spanOf));
      }
      if (how === 'hang') return undefined;
      const status = how === 'well' ? 200 : how;
      return response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${port}`,
    spans,
    requests,
    behave: (next) => {
      how = next;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

type Attribute = { readonly key: string; readonly value: Value };
type Value = { readonly arrayValue?: { readonly values: readonly Value[] }; readonly [kind: string]: unknown };

interface ExportRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly SentSpan[] }[];
  }[];
}

interface SentSpan extends Pick<ReceivedSpan, 'traceId' | 'spanId' | 'name' | 'kind'> {
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
  readonly status?: { readonly code?: number };
}

const PROTOCOL = protobuf.loadSync(join(import.meta.dirname, 'otlp.proto')).lookupType('ExportRequest');

function exportRequestOf(type: string | undefined, body: Buffer): ExportRequest {
  if (type === 'application/json') return JSON.parse(body.toString());
  if (type !== 'application/x-protobuf') throw new TypeError(`a collector refuses ${type}`);
  const request = PROTOCOL.toObject(PROTOCOL.decode(body), { longs: Number, arrays: true, defaults: false });
  return JSON.parse(
    JSON.stringify(request, (_, value) => (isBytes(value) ? Buffer.from(value.data).toString('hex') : value)),
  );
}

/** Of a buffer's own JSON. */
function isBytes(value: unknown): value is { readonly data: number[] } {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'Buffer' && 'data' in value;
}

function spanOf({ startTimeUnixNano, endTimeUnixNano, attributes, status, ...span }: SentSpan): ReceivedSpan {
  return {
    ...span,
    startMs: Number(startTimeUnixNano) / 1e6,
    endMs: Number(endTimeUnixNano) / 1e6,
    attributes: valuesOf(attributes),
    isError: status?.code === 2,
  };
}

function valuesOf(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plain(value)]));
}

function plain({ arrayValue, ...scalar }: Value): unknown {
  return arrayValue === undefined ? Object.values(scalar)[0] : arrayValue.values.map(plain);
}
