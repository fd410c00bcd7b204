/** Runs with a configured model: a real server that speaks the OpenAI API, well and badly. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { eventually } from '#test/support/eventually.ts';
import { deltasOf, hangs, refuses, says, saysThen, saysTooMuch, startModelServer } from '#test/support/model-server.ts';
import type { Answer, ModelServer } from '#test/support/model-server.ts';
import { RunsApi } from '#test/support/runs-api.ts';
import type { Asked, Json } from '#test/support/runs-api.ts';
import { html, startWebsite } from '#test/support/website.ts';
import type { Website } from '#test/support/website.ts';

let server: ModelServer;
let site: Website;
let api: RunsApi;

beforeAll(async () => {
  [server, site] = await Promise.all([
    startModelServer(),
    startWebsite({ '/hours': html('Hours', { text: 'Open at <b>nine</b>.' }) }),
  ]);
  api = await RunsApi.start({
    fetch: { allowHosts: [{ host: '127.0.0.1', port: site.port }] },
    model: {
      baseUrl: server.baseUrl,
      apiKey: 'secret',
      name: 'small',
      prices: { input: 2.5, output: 10 },
      limits: { totalMs: 30_000, firstPartMs: 6_000, idleMs: 6_000, maxAttempts: 2 },
    },
  });
});
afterEach(() => {
  server.requests.length = 0;
});
afterAll(async () => {
  await api?.stop();
  await Promise.all([server?.stop(), site?.stop()]);
});

const roles = async (asked: Asked): Promise<string[]> =>
  (await api.tree(asked)).map(({ content_role }) => content_role);
const text = ({ content }: Json): string => content.map((item: Json) => item.text).join('');

async function answered(asked: Asked): Promise<string> {
  expect(await api.ended(asked.runId)).toMatchObject({ status: 'completed' });
  return text(await api.response(asked));
}

const search = { id: 'a', name: 'search_knowledge_graph', arguments: '{"query":"warehouse Bremen open"}' };

describe('a run with a model', () => {
  it('reasons, calls tools, answers from their results, and counts tokens', async () => {
    server.script(
      says({ reasoning: ['The handbook ', 'may say it.'], text: ['Let me look.'], toolCalls: [search] }),
      says({ text: ['It opens ', 'at nine.'] }),
    );
    const asked = await api.ask('When does the warehouse open?');
    expect(await answered(asked)).toBe('Let me look.\n\nIt opens at nine.');
    expect(await roles(asked)).toEqual(['agent_reasoning', 'agent_response', 'tool_call', 'tool_call_result']);
    expect(text((await api.tree(asked))[0])).toBe('The handbook may say it.');
    // Posted before the search, and completed with what it has found.
    expect((await api.response(asked)).metadata.sources).toMatchObject([{ name: 'Warehouse handbook' }]);
    expect(await api.run(asked.runId)).toMatchObject({
      model: { kind: 'openai-compatible', name: 'small' },
      steps: [
        { kind: 'model', status: 'tool_calls', usage: { input_tokens: 12, output_tokens: 5 }, cost: 0.00008 },
        { kind: 'tool', status: 'success' },
        { kind: 'model', status: 'stop' },
      ],
      usage: { input_tokens: 24, cached_input_tokens: 8, output_tokens: 10, reasoning_tokens: 4 },
      cost: 0.00016,
    });
    const [, second] = server.requests;
    const result = second?.body.messages.at(-1);
    expect(result).toMatchObject({
      role: 'tool',
      content: expect.stringMatching(/^<untrusted_data>\n.*opens at nine/s),
    });
    expect(second?.body.messages[0]?.content).toContain('You are Ada.');
  });

  it('gives the model the conversation, and what the message and the agent ask for', async () => {
    server.script(says({ text: ['First.'] }), says({ text: ['Second.'] }));
    const { id: agentId } = await api.newAgent({ name: 'Grace', logic_model_temperature: 0.7, model_name: 'tiny' });
    const first = await api.ask('One?', { agentId });
    await answered(first);
    const invocationConfig = { reasoning_effort: 'high', thinking_budget: 256, thinking: null, model_name: null };
    const second = await api.ask('Two?', { agentId, channelId: first.channelId, invocationConfig });
    expect(await answered(second)).toBe('Second.');
    const [before, after] = server.requests.map(({ body }) => body);
    expect(before).toMatchObject({ model: 'tiny', temperature: 0.7 });
    expect(before).not.toHaveProperty('reasoning_effort');
    expect(before).not.toHaveProperty('tools');
    expect(after).toMatchObject({ model: 'tiny', reasoning_effort: 'high', thinking_budget: 256 });
    expect(after?.messages.slice(1)).toEqual([
      { role: 'user', content: 'One?' },
      { role: 'assistant', content: 'First.' },
      { role: 'user', content: 'Two?' },
    ]);
  });

  it('answers calls that cannot be made with a failure, which the model reads', async () => {
    const broken = { id: 'same', name: 'search_knowledge_graph', arguments: '{"query": "m' };
    const unknown = { id: 'same', name: 'destroy', arguments: '{}' };
    server.script(says({ toolCalls: [broken, unknown] }), says({ text: ['Sorry.'] }));
    const asked = await api.ask('Destroy it.');
    expect(await answered(asked)).toBe('Sorry.');
    const results = (await api.tree(asked)).filter(({ content_role }) => content_role === 'tool_call_result');
    expect(results.map(({ content }) => [content[0].status, content[0].tool_result.error])).toEqual([
      ['failure', 'the arguments do not fit the tool'],
      ['failure', 'there is no such tool'],
    ]);
    expect(server.requests[1]?.body.messages.filter(({ role }) => role === 'tool')).toHaveLength(2);
  });

  it('reads a web page if the agent has the feature, and refuses private addresses', async () => {
    const features = { general_web_search: true };
    const { id: agentId } = await api.newAgent({ name: 'Reader', features });
    const read = (url: string) => ({ id: 'p', name: 'read_web_page', arguments: JSON.stringify({ url }) });
    server.script(
      says({ toolCalls: [read(`${site.origin}/hours`), read('http://127.0.0.1:1/secret')] }),
      says({ text: ['At nine.'] }),
    );
    const asked = await api.ask('When?', { agentId });
    expect(await answered(asked)).toBe('At nine.');
    const tree = await api.tree(asked);
    const results = tree
      .filter(({ content_role }) => content_role === 'tool_call_result')
      .map(({ content }) => content[0]);
    expect(results[0]).toMatchObject({ status: 'success', tool_result: { title: 'Hours', is_cut: false } });
    expect(results[0].tool_result.text).toContain('nine');
    expect(results[1]).toMatchObject({ status: 'failure', tool_result: { error: expect.stringContaining('port 1') } });
    expect((await api.response(asked)).metadata.sources).toEqual([
      { document_id: null, name: 'Hours', url: `${site.origin}/hours` },
    ]);

    server.script(says({ text: ['No.'] }));
    const without = await api.ask('When?', { agentId, invocationConfig: { enable_web_search: false } });
    await answered(without);
    expect(server.requests.at(-1)?.body).not.toHaveProperty('tools');
  });

  it('escapes the HTML of an agent unless it may send some', async () => {
    const answer = says({ text: ['1 < 2 <', 'script>', '</script>'] });
    server.script(answer);
    expect(await answered(await api.ask('HTML?'))).toBe('1 < 2 &lt;script>&lt;/script>');
    const { id: agentId } = await api.newAgent({ name: 'Web', allow_html_responses: true });
    expect(await answered(await api.ask('HTML?', { agentId }))).toBe('1 < 2 <script></script>');
  });
});

/** What an endpoint may do wrong, and what the run then comes to. */
interface Misbehaviour {
  readonly answers: readonly [Answer, ...Answer[]];
  /** Null: the run completes. */
  readonly error: string | null;
  readonly roles: readonly string[];
  /** Beginning of the response; none without one. */
  readonly written: readonly string[];
}

const WRITTEN = 'It opens at';
const half = { text: ['It opens ', 'at'] };
const NO_TEXT = ['internal_error'];
const SOME_TEXT = ['agent_response', 'internal_error'];
const MISBEHAVIOURS: Readonly<Record<string, Misbehaviour>> = {
  refusal: { answers: [refuses(400)], error: 'model_refused', roles: NO_TEXT, written: [] },
  'a 429 that asks for a moment': {
    answers: [refuses(429, { 'retry-after': '0' }), says(half)],
    error: null,
    roles: ['agent_response'],
    written: [WRITTEN],
  },
  'a 429 that asks for an hour': {
    answers: [refuses(429, { 'retry-after': '3600' })],
    error: 'model_rate_limited',
    roles: NO_TEXT,
    written: [],
  },
  'a hang before the stream': { answers: [hangs], error: 'model_timeout', roles: NO_TEXT, written: [] },
  'a hang in the middle of the stream': {
    answers: [saysThen(half, () => undefined)],
    error: 'model_timeout',
    roles: SOME_TEXT,
    written: [WRITTEN],
  },
  'truncated JSON': {
    answers: [saysThen(half, (response) => response.end('data: {"id":"answer","choices":[{"delta"\n\n'))],
    error: 'model_bad_response',
    roles: SOME_TEXT,
    written: [WRITTEN],
  },
  'a stream that ends without a reason': {
    answers: [saysThen(half, (response) => response.end())],
    error: 'model_bad_response',
    roles: SOME_TEXT,
    written: [WRITTEN],
  },
  'a disconnect': {
    answers: [saysThen(half, (response) => setImmediate(() => response.destroy()))],
    error: 'model_disconnected',
    roles: SOME_TEXT,
    written: [WRITTEN],
  },
  'a missing [DONE]': {
    answers: [saysThen(half, (response) => response.end(LAST_CHUNK))],
    error: null,
    roles: ['agent_response'],
    written: [WRITTEN],
  },
  'an answer of 50 MB': {
    answers: [saysTooMuch(50_000_000)],
    error: null,
    roles: ['agent_response'],
    written: ['xxxxxxxxxxx'],
  },
};
const LAST_CHUNK = 'data: {"id":"answer","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';

describe('a run that cannot go on', () => {
  it('has one end, whatever the endpoint does, and keeps what was written', async () => {
    const answered = new Map<string, number>();
    server.script((response, request) => {
      const what = request.body.messages.at(-1)?.content ?? '';
      const { answers } = MISBEHAVIOURS[what]!;
      const times = answered.get(what) ?? 0;
      answered.set(what, times + 1);
      return answers[Math.min(times, answers.length - 1)]!(response, request);
    });
    // All at once: two of them end by limits of time.
    await Promise.all(
      Object.entries(MISBEHAVIOURS).map(async ([what, expected]) => {
        const asked = await api.ask(what);
        const { error, response_id } = await api.ended(asked.runId);
        await eventually(async () => expect([what, await roles(asked)]).toEqual([what, expected.roles]));
        const ends = (await api.types(asked.runId)).filter((type) => /^Run(Completed|Failed|Cancelled)$/.test(type));
        expect([what, error?.reason ?? null, ends.length]).toEqual([what, expected.error, 1]);
        expect([what, response_id === null]).toEqual([what, expected.error !== null]);
        const tree = await api.tree(asked);
        expect(tree.every(({ complete }) => complete)).toBe(true);
        const written = tree.filter(({ content_role }) => content_role === 'agent_response').map(text);
        expect([what, ...written.map((one) => one.slice(0, WRITTEN.length))]).toEqual([what, ...expected.written]);
        expect(JSON.stringify(tree)).not.toContain('refused by the test');
      }),
    );
    expect(answered.get('a 429 that asks for a moment')).toBe(2);
  });

  it('keeps what was written when it is cancelled, and ends the request of the model', async () => {
    let isOpen = false;
    server.script(
      saysThen({ text: ['It opens ', 'at'] }, (response) => {
        isOpen = true;
        response.on('close', () => (isOpen = false));
        const [more] = deltasOf({ text: ['.'] });
        const timer = setInterval(() => {
          const choices = [{ index: 0, delta: more, finish_reason: null }];
          response.write(`data: ${JSON.stringify({ id: 'answer', model: 'small', choices })}\n\n`);
        }, 200);
        response.on('close', () => clearInterval(timer));
      }),
    );
    const asked = await api.ask('When?');
    await eventually(async () => expect(await roles(asked)).toEqual(['agent_response']));
    await eventually(() => isOpen);
    const drafts = () => api.documents.api.features.interactions.drafts.current(api.organizationId, asked.channelId);
    await eventually(async () => expect(JSON.stringify(await drafts())).toContain('It opens at'));
    expect((await api.call('POST', `/api/v1/runs/${asked.runId}/cancel`)).json).toMatchObject({ status: 'cancelled' });
    await eventually(async () => expect(await api.response(asked)).toMatchObject({ complete: true }));
    expect(text(await api.response(asked))).toMatch(/^It opens at\.*$/);
    await eventually(() => !isOpen);
    expect(await roles(asked)).toEqual(['agent_response']);
  });
});

describe('readiness', () => {
  it('says what writes the answers', async () => {
    expect((await api.call('GET', '/health/ready')).json.checks.model).toMatchObject({
      status: 'ok',
      detail: { kind: 'openai-compatible', name: 'small' },
    });
  });
});
