/**
 * Lists the tools of the server that the last argument names, and calls each of them, as an agent's worker does. The
 * conformance suite starts it, and judges it by what its server receives.
 */
import { z } from 'zod';

import { createFetcher } from '#libs/platform/fetch/index.ts';
import { toolServers } from '#libs/platform/mcp/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';

const url = process.argv.at(-1) ?? '';
const { hostname: host, port } = new URL(url);
const metrics = createMetrics({ processMetrics: false });
const fetcher = createFetcher({ metrics, allowHosts: [{ host, port: Number(port) }] });
const firstEra = process.env.PARLEY_FIRST_ERA === 'stateless' ? 'stateless' : 'initialized';
const servers = toolServers(fetcher, { timeoutMs: 20_000, maxBytes: 8 * 1024 * 1024, firstEra });
const never = new AbortController().signal;

/** Calls that a scenario wants; default: each tool once, with the simplest arguments of its schema. */
const context = z
  .object({ toolCalls: z.array(z.object({ name: z.string(), arguments: z.record(z.string(), z.unknown()) })) })
  .safeParse(JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}'));

const { tools, leftOut } = await servers.list({ url, token: null }, never);
console.log(JSON.stringify({ tools: tools.map(({ name }) => name), leftOut }));
const calls = context.success
  ? context.data.toolCalls.map(({ name, arguments: input }) => ({ name, input }))
  : tools.map(({ name, input }) => ({ name, input: simplest(input as JsonSchema) as Record<string, unknown> }));
// A scenario wants to see the schema that was read.
const echo = calls.find(({ name }) => name === 'json_schema_echo');
if (echo !== undefined) echo.input.schema = tools.find(({ name }) => name === 'json_schema_2020_12_tool')?.input;
for (const { name, input } of calls) {
  const schema = tools.find((tool) => tool.name === name)?.input ?? { type: 'object' };
  try {
    const result = await servers.call({ url, token: null }, { name, input, schema }, never);
    console.log(JSON.stringify({ name, ...result, text: result.text.slice(0, 200) }));
  } catch (error) {
    console.log(JSON.stringify({ name, error: String(error) }));
  }
}
await fetcher.close();

interface JsonSchema {
  readonly type?: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
}

function simplest(schema: JsonSchema): unknown {
  const { type, properties, required = [], enum: values, default: given } = schema;
  if (given !== undefined) return given;
  if (values !== undefined) return values[0];
  switch (type) {
    case 'number':
    case 'integer':
      return 1;
    case 'boolean':
      return true;
    case 'array':
      return [];
    case 'object':
      return Object.fromEntries(required.map((name) => [name, simplest(properties?.[name] ?? {})]));
    default:
      return 'text';
  }
}
