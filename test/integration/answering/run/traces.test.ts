/** Traces of runs, as a collector receives them from the whole system. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { parseConfig, VERSION } from '#libs/platform/config/index.ts';
import { createMetrics, otlpSpans } from '#libs/platform/telemetry/index.ts';
import { DocumentsApi } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';
import { type ModelServer, refuses, says, startModelServer } from '#test/support/model-server.ts';
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '#test/support/otlp-receiver.ts';
import { html, startWebsite, type Website } from '#test/support/website.ts';

const ENDED = /^(completed|failed|cancelled)$/;

let server: ModelServer;
let site: Website;
let collector: OtlpReceiver;

beforeAll(async () => {
  [server, site, collector] = await Promise.all([
    startModelServer(),
    startWebsite({ '/hours': html('Hours', { text: 'Open at nine.' }) }),
    startOtlpReceiver(),
  ]);
});
afterAll(async () => {
  await Promise.all([server?.stop(), site?.stop(), collector?.stop()]);
});

const traceOf = (digit: string): string => digit.repeat(32);
const traceparentOf = (digit: string, flags = '01'): string => `00-${traceOf(digit)}-${digit.repeat(16)}-${flags}`;
/** On a busy machine, loading the exporter takes seconds. */
const CLOSE_TIMEOUT_MS = 60_000;
const tracing = (closeTimeoutMs = CLOSE_TIMEOUT_MS) => {
  const variables = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=a%20b',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=a%2Cb,service.name=other',
    OTEL_SERVICE_NAME: 'parley',
  };
  return { ...parseConfig(variables).tracing!, closeTimeoutMs };
};

/** Posts one message for each answer, and waits for the ends of the runs. */
async function answerAll(messages: readonly { readonly text: string; readonly traceparent: string }[]) {
  const api = await DocumentsApi.start({
    fetch: { allowHosts: [{ host: '127.0.0.1', port: site.port }] },
    model: {
      baseUrl: server.baseUrl,
      apiKey: 'secret',
      name: 'small',
      prices: { input: 1, output: 2 },
      limits: { maxAttempts: 1 },
    },
    tracing: tracing(),
  });
  try {
    const features = { general_web_search: true };
    const agent = (await api.call('POST', '/api/v1/agents', { name: 'Ada', features })).json;
    const participants = [{ type: 'agent', id: agent.id }];
    const body = { name: 'a', participants, agent_invocation_behavior: 'all_messages' };
    const channel = (await api.call('POST', '/api/v1/channels', body)).json;
    const runs: string[] = [];
    for (const { text, traceparent } of messages) {
      const url = `/api/v1/channels/${channel.id}/interactions`;
      const headers = { traceparent, 'x-request-id': `request-${traceparent.slice(3, 4)}` };
      const message = (await api.call('POST', url, { content: [{ type: 'text', text }] }, headers)).json;
      const invocations = `/api/v1/channels/${channel.id}/invocations?message_id=${message.id}`;
      const runId = await eventually(async () => (await api.call('GET', invocations)).json.items[0]?.run_id ?? false);
      await eventually(async () => {
        expect((await api.call('GET', `/api/v1/runs/${runId}`)).json.status).toMatch(ENDED);
      });
      runs.push(runId);
    }
    // The end of a failed run is shown by another step, which records its span.
    await eventually(async () => expect(await api.types(`run-${runs.at(-1)}`)).toContain('RunEndShown.v1'));
    const posted: string[] = [];
    for await (const { metadata } of api.api.stores.platform.store.readStream(`channel-${channel.id}`)) {
      posted.push(JSON.stringify(metadata));
    }
    return { agent, channel, runs, posted };
  } finally {
    await api.stop();
  }
}

describe('the trace of a message', () => {
  it('has its request, the run, and the calls of the model and of tools, without their texts', async () => {
    const read = { id: 'a', name: 'read_web_page', arguments: JSON.stringify({ url: `${site.origin}/hours` }) };
    server.script(
      says({ reasoning: ['Confidential thought.'], toolCalls: [read, { ...read, id: 'b', arguments: '{}' }] }),
      says({ text: ['Confidential answer.'] }),
      says({ text: ['Not sampled.'] }),
      refuses(400),
    );
    const { agent, channel, runs, posted } = await answerAll([
      { text: 'Confidential question?', traceparent: traceparentOf('a') },
      { text: 'Not sampled?', traceparent: traceparentOf('b', '00') },
      { text: 'Refused?', traceparent: traceparentOf('c') },
    ]);
    // The stop has exported what was recorded.
    const { spans } = collector;
    const named = (digit: string, name: string): ReceivedSpan[] =>
      spans.filter((span) => span.traceId === traceOf(digit) && span.name === name);
    const only = (digit: string, name: string): ReceivedSpan => {
      expect(named(digit, name)).toHaveLength(1);
      return named(digit, name)[0]!;
    };

    const request = only('a', 'POST /api/v1/channels/:id/interactions');
    expect(request).toMatchObject({ kind: 2, parentSpanId: 'a'.repeat(16), isError: false });
    expect(request.attributes['user.id']).toBe(channel.owner_id);
    const run = only('a', 'invoke_agent Ada');
    expect(run).toMatchObject({
      kind: 1,
      parentSpanId: request.spanId,
      isError: false,
      attributes: {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.provider.name': 'openai',
        'gen_ai.agent.id': agent.id,
        'gen_ai.agent.name': 'Ada',
        'gen_ai.conversation.id': channel.id,
        'gen_ai.request.model': 'small',
        'gen_ai.usage.input_tokens': 24,
        'gen_ai.usage.output_tokens': 10,
        // 24 tokens of 1, 10 of 2, for a million
        'gen_ai.usage.cost': 0.000044,
        'parley.run.id': runs[0],
      },
    });
    const chats = named('a', 'chat small');
    expect(chats.map(({ attributes }) => attributes['gen_ai.response.finish_reasons'])).toEqual([
      ['tool_calls'],
      ['stop'],
    ]);
    for (const chat of chats) {
      expect(chat).toMatchObject({
        kind: 3,
        parentSpanId: run.spanId,
        attributes: {
          'gen_ai.operation.name': 'chat',
          'gen_ai.request.model': 'small',
          'gen_ai.usage.input_tokens': 12,
          'gen_ai.usage.cache_read.input_tokens': 4,
          'server.address': '127.0.0.1',
          'server.port': Number(new URL(server.baseUrl).port),
        },
      });
      expect(chat.startMs).toBeGreaterThanOrEqual(run.startMs);
      expect(chat.endMs).toBeLessThanOrEqual(run.endMs);
    }
    const [found, failed] = named('a', 'execute_tool read_web_page').toSorted(
      (x, y) => Number(x.isError) - Number(y.isError),
    );
    expect(found).toMatchObject({
      parentSpanId: run.spanId,
      isError: false,
      attributes: { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'read_web_page' },
    });
    expect(failed).toMatchObject({
      isError: true,
      attributes: { 'error.type': 'failure' },
    });

    // The endpoint continues the trace of each call, and what the run posts that of the run.
    const sent = server.requests.map(({ headers }) => headers['traceparent']);
    expect(sent.slice(0, 2)).toEqual(chats.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`));
    expect(
      posted.filter((metadata) => metadata.includes(`00-${traceOf('a')}-${run.spanId}-01`)).length,
    ).toBeGreaterThan(3);
    // After the creation of the channel, all events name the request that they follow from.
    const requests = posted.slice(1).map((metadata) => JSON.parse(metadata).$correlationId);
    expect(new Set(requests)).toEqual(new Set(['request-a', 'request-b', 'request-c']));

    expect(spans.filter(({ traceId }) => traceId === traceOf('b'))).toEqual([]);
    expect(sent[2]).toMatch(new RegExp(`^00-${traceOf('b')}-[0-9a-f]{16}-00$`));
    expect(only('c', 'invoke_agent Ada')).toMatchObject({
      isError: true,
      attributes: { 'error.type': 'model_refused', 'parley.run.id': runs[2] },
    });
    expect(only('c', 'chat small')).toMatchObject({ isError: true, attributes: { 'error.type': 'model_refused' } });
    expect(JSON.stringify(spans)).not.toMatch(/confidential|open at nine/i);
    expect(collector.requests[0]).toMatchObject({
      headers: { 'x-tenant': 'a b' },
      resource: { 'service.name': 'parley', 'service.version': VERSION, 'deployment.environment.name': 'a,b' },
    });
  });
});

describe('the export', () => {
  const span = {
    name: 'test',
    kind: 'internal',
    context: { traceId: traceOf('d'), spanId: 'd'.repeat(16), isSampled: true },
    parentSpanId: null,
    startedMs: Date.UTC(2026, 0, 1),
    endedMs: Date.UTC(2026, 0, 2),
    attributes: {},
    error: null,
  } as const;

  it.each(['hang', 500] as const)('disturbs nothing when the collector answers with %s', async (how) => {
    collector.behave(how);
    const warnings: unknown[] = [];
    const metrics = createMetrics({ processMetrics: false });
    const log = { warn: (fields: object) => void warnings.push(fields) };
    const before = collector.requests.length;
    const hasFailed = how === 500;
    const spans = otlpSpans(tracing(hasFailed ? CLOSE_TIMEOUT_MS : 200), { log, metrics });
    spans.record(span);
    const closed = spans.close();
    await eventually(() => collector.requests.length > before);
    await closed;
    expect(warnings).toHaveLength(hasFailed ? 1 : 0);
    expect((await metrics.scrape()).includes('outcome="failed"} 1')).toBe(hasFailed);
  });

  it.each(['http/protobuf', 'http/json'] as const)('sends the same as %s', async (protocol) => {
    collector.behave('well');
    const before = collector.spans.length;
    const metrics = createMetrics({ processMetrics: false });
    const spans = otlpSpans({ ...tracing(), protocol }, { log: { warn: () => undefined }, metrics });
    const attributes = { text: 'é', list: ['a', 'b'], count: 7, share: 0.5, is: true };
    spans.record({ ...span, parentSpanId: 'b'.repeat(16), attributes, error: 'timeout' });
    await spans.close();
    expect(collector.spans.slice(before)).toMatchObject([
      {
        traceId: traceOf('d'),
        spanId: 'd'.repeat(16),
        parentSpanId: 'b'.repeat(16),
        name: 'test',
        kind: 1,
        startMs: span.startedMs,
        endMs: span.endedMs,
        attributes: { ...attributes, 'error.type': 'timeout' },
        isError: true,
      },
    ]);
  });

  it('is off without an endpoint', () => {
    expect(parseConfig({}).tracing).toBeNull();
  });

  it('is named by OTEL_SERVICE_NAME, by service.name, or parley', () => {
    const named = (variables: Record<string, string>) =>
      parseConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector', ...variables }).tracing?.attributes[
        'service.name'
      ];
    expect(named({})).toBe('parley');
    expect(named({ OTEL_RESOURCE_ATTRIBUTES: 'service.name=a' })).toBe('a');
    expect(named({ OTEL_RESOURCE_ATTRIBUTES: 'service.name=a', OTEL_SERVICE_NAME: 'b' })).toBe('b');
    expect(() => named({ OTEL_RESOURCE_ATTRIBUTES: 'a' })).toThrow(/OTEL_RESOURCE_ATTRIBUTES must be a list/);
  });
});
