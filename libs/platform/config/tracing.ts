/** The variables for the export of traces, by the names that OpenTelemetry gives them, and the configuration that results. */
import { z } from 'zod';

import { VERSION } from './version.ts';
import { oneOf, webUrl } from './variables.ts';

const PROTOCOLS = ['http/protobuf', 'http/json'] as const;

export const tracingVariables = {
  OTEL_EXPORTER_OTLP_ENDPOINT: webUrl()
    .optional()
    .describe('OpenTelemetry collector for traces of runs, such as `http://127.0.0.1:4318`. Default: no traces.'),
  OTEL_EXPORTER_OTLP_HEADERS: z
    .string()
    .refine((value) => pairsOf(value) !== null, 'must be a list like name=value,other=value')
    .optional()
    .meta({ description: 'Headers for the collector, `name=value`, separated by commas.', secret: true }),
  OTEL_EXPORTER_OTLP_PROTOCOL: oneOf(PROTOCOLS)
    .prefault('http/protobuf')
    .describe(`How traces are encoded: ${PROTOCOLS.join(' or ')}.`),
  OTEL_SERVICE_NAME: z
    .string()
    .optional()
    .describe('Name of this service in traces. Default: the attribute `service.name`, or `parley`.'),
  OTEL_RESOURCE_ATTRIBUTES: z
    .string()
    .refine((value) => pairsOf(value) !== null, 'must be a list like name=value,other=value')
    .optional()
    .describe('Attributes of this process in traces, such as `deployment.environment.name=production`.'),
};

const UNNAMED = 'parley';

type TracingValues = z.infer<z.ZodObject<typeof tracingVariables>>;

export interface TracingConfig {
  /** Of the collector's traces. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly protocol: (typeof PROTOCOLS)[number];
  /** Of the resource, `service.name` and `service.version` included. */
  readonly attributes: Readonly<Record<string, string>>;
}

/** Converts valid variables. Null: no export. */
export function tracingConfigOf(values: TracingValues): TracingConfig | null {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_HEADERS: headers = '' } = values;
  if (endpoint === undefined) return null;
  const url = `${endpoint.replace(/\/+$/, '')}/v1/traces`;
  const { OTEL_SERVICE_NAME: name, OTEL_RESOURCE_ATTRIBUTES: attributes = '' } = values;
  return {
    url,
    headers: pairsOf(headers) ?? {},
    protocol: values.OTEL_EXPORTER_OTLP_PROTOCOL,
    attributes: {
      'service.name': UNNAMED,
      'service.version': VERSION,
      ...pairsOf(attributes),
      ...(name !== undefined && { 'service.name': name }),
    },
  };
}

/** Headers or attributes. Values are percent-encoded, as in W3C Baggage. Null if the text is no such list. */
function pairsOf(text: string): Record<string, string> | null {
  const pairs: Record<string, string> = {};
  for (const part of text.split(',')) {
    if (part.trim() === '') continue;
    const [, name, value] = /^\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*(.*?)\s*$/.exec(part) ?? [];
    if (name === undefined || value === undefined) return null;
    try {
      pairs[name] = decodeURIComponent(value);
    } catch {
      return null;
    }
  }
  return pairs;
}
