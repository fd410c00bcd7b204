/** The variables for the export of traces, by the names that OpenTelemetry gives them, and the configuration that results. */
import { z } from 'zod';

import { VERSION } from './version.ts';
import { webUrl } from './variables.ts';

export const tracingVariables = {
  OTEL_EXPORTER_OTLP_ENDPOINT: webUrl()
    .optional()
    .describe('OpenTelemetry collector for traces of runs, such as `http://127.0.0.1:4318`. Default: no traces.'),
  OTEL_EXPORTER_OTLP_HEADERS: z
    .string()
    .refine((value) => headersOf(value) !== null, 'must be a list like name=value,other=value')
    .optional()
    .meta({ description: 'Headers for the collector, `name=value`, separated by commas.', secret: true }),
  OTEL_SERVICE_NAME: z.string().prefault('parley').describe('Name of this service in traces.'),
};

type TracingValues = z.infer<z.ZodObject<typeof tracingVariables>>;

export interface TracingConfig {
  /** Of the collector's traces. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  readonly serviceVersion: string;
}

/** Converts valid variables. Null: no export. */
export function tracingConfigOf(values: TracingValues): TracingConfig | null {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_HEADERS: headers = '' } = values;
  if (endpoint === undefined) return null;
  const url = `${endpoint.replace(/\/+$/, '')}/v1/traces`;
  return { url, headers: headersOf(headers) ?? {}, serviceName: values.OTEL_SERVICE_NAME, serviceVersion: VERSION };
}

/** Values are percent-encoded, as in W3C Baggage. Null for what is no list of headers. */
function headersOf(text: string): Record<string, string> | null {
  const headers: Record<string, string> = {};
  for (const part of text.split(',')) {
    if (part.trim() === '') continue;
    const [, name, value] = /^\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*(.*?)\s*$/.exec(part) ?? [];
    if (name === undefined || value === undefined) return null;
    try {
      headers[name] = decodeURIComponent(value);
    } catch {
      return null;
    }
  }
  return headers;
}
