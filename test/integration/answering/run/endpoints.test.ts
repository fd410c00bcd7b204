/** Runs with strict endpoints: each family refuses what its documents and its users' reports say that it refuses. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Endpoints, type Said, type Scripted, startEndpoints } from '#test/support/endpoints/endpoint.ts';
import { FAMILIES } from '#test/support/endpoints/families.ts';
import { eventually } from '#test/support/eventually.ts';
import { type McpTestServer, saysText, startMcpServer } from '#test/support/mcp-server.ts';
import { type Asked, type Json, RunsApi } from '#test/support/runs-api.ts';

const NAMES = FAMILIES.map(({ name }) => name);
/** Also the slowest machine answers within this. */
const PATIENT_MS = 600_000;

let endpoints: Endpoints;
let tools: McpTestServer;
let api: RunsApi;

beforeAll(async () => {
  [endpoints, tools] = await Promise.all([startEndpoints(FAMILIES), startMcpServer()]);
  const limits = { totalMs: PATIENT_MS, firstPartMs: PATIENT_MS, idleMs: PATIENT_MS };
  api = await RunsApi.start({
    fetch: { allowHosts: [{ host: '127.0.0.1', port: tools.port }] },
    model: { baseUrl: endpoints.baseUrl, apiKey: 'secret', name: 'openai/default', limits },
    relevance: { timeoutMs: PATIENT_MS },
  });
});
afterAll(async () => {
  await api?.stop();
  await Promise.all([endpoints?.stop(), tools?.stop()]);
});

type Prepared = Partial<Pick<Asked, 'agentId' | 'channelId' | 'invocationConfig'>>;

/** What a run with the model comes to: its text, or why it failed, with what the endpoint has refused. */
async function outcome(model: string, prepare: (model: string) => Prepared | Promise<Prepared>): Promise<string> {
  const { invocationConfig, ...options } = await prepare(model);
  const asked = await api.ask('When does it open?', {
    ...options,
    invocationConfig: { model_name: model, ...invocationConfig },
  });
  const { status, error } = await api.ended(asked.runId);
  if (status === 'completed') return textOf(await api.response(asked));
  return [status, error?.reason, ...endpoints.refused(model).map(({ message }) => message)].join(': ');
}

const textOf = ({ content }: Json): string => content.map(({ text }: Json) => text).join('');

/** The outcomes of a scenario by family. */
async function outcomes(
  scenario: string,
  script: readonly Scripted[],
  prepare: (model: string) => Prepared | Promise<Prepared> = () => ({}),
): Promise<Record<string, string>> {
  const found = await Promise.all(
    NAMES.map(async (family) => {
      const model = `${family}/${scenario}`;
      endpoints.script(model, ...script);
      return [family, await outcome(model, prepare)] as const;
    }),
  );
  return Object.fromEntries(found);
}

const everywhere = (text: string): Record<string, string> => Object.fromEntries(NAMES.map((family) => [family, text]));

const ANSWER = 'It opens at nine.';
const answers: Said = { text: [ANSWER] };
const search = { name: 'search_knowledge_graph', arguments: '{"query":"warehouse Bremen open"}' };
const looksUp: Said = { reasoning: ['The handbook ', 'may say it.'], calls: [search] };

/** Ten runs at once, of up to 15 steps. */
describe('each family of endpoints', { timeout: PATIENT_MS }, () => {
  it('gives a plain answer', async () => {
    expect(await outcomes('plain', [answers])).toEqual(everywhere(ANSWER));
  });

  it('streams an answer after its thoughts', async () => {
    const said = { reasoning: ['First ', 'I think.'], text: ['It ', 'opens ', 'at', ' nine.'] };
    expect(await outcomes('streamed', [said])).toEqual(everywhere(ANSWER));
  });

  it('answers after two rounds of tools', async () => {
    const script = [{ ...looksUp, text: ['Let me look.'] }, looksUp, answers];
    expect(await outcomes('two-rounds', script)).toEqual(everywhere(`Let me look.\n\n${ANSWER}`));
  });

  it('answers after two calls in parallel', async () => {
    const script = [{ ...looksUp, calls: [search, { ...search, arguments: '{"query":"helmets"}' }] }, answers];
    expect(await outcomes('parallel', script)).toEqual(everywhere(ANSWER));
    for (const family of NAMES) {
      const results = endpoints
        .requests(`${family}/parallel`)
        .at(-1)
        ?.messages.filter(({ role }) => role === 'tool');
      expect([family, results?.map(({ content }) => String(content).includes('at nine'))]).toEqual([
        family,
        [true, false],
      ]);
    }
  });

  it('answers after calls that cannot be made', async () => {
    const calls = [
      { name: 'functions.search:0<|x|>', arguments: '{}' },
      { ...search, arguments: '{"query": "m' },
    ];
    expect(await outcomes('invented', [{ calls }, answers])).toEqual(everywhere(ANSWER));
  });

  it('answers in the last call, which has tools in its history', async () => {
    const script = [...Array.from({ length: 7 }, () => looksUp), answers];
    expect(await outcomes('last-call', script)).toEqual(everywhere(ANSWER));
  });

  it('answers where the agent spoke first, and users wrote several messages', async () => {
    const prepare = async (): Promise<Prepared> => {
      const channelId = await api.newChannel();
      await speak(channelId, 'Welcome.');
      await api.post(channelId, 'Hello.');
      await api.post(channelId, 'I have a question.');
      return { channelId };
    };
    expect(await outcomes('greeted', [looksUp, answers], prepare)).toEqual(everywhere(ANSWER));
  });

  it('answers in a conversation that is longer than its part that the model gets', async () => {
    const channelId = await api.newChannel();
    for (let round = 0; round < 31; round += 1) {
      await speak(channelId, `Answer ${round}`);
      await api.post(channelId, `Question ${round}`);
    }
    endpoints.script('vllm/cut', answers);
    expect(await outcome('vllm/cut', () => ({ channelId }))).toBe(ANSWER);
  });

  it('answers a message that asks it to think', async () => {
    const invocationConfig = { reasoning_effort: 'high', thinking_budget: 1_024 };
    expect(await outcomes('thinking', [looksUp, answers], () => ({ invocationConfig }))).toEqual(everywhere(ANSWER));
  });

  it('answers an agent whose tool server has schemas that endpoints refuse', async () => {
    for (const [name, inputSchema] of Object.entries(SCHEMAS)) {
      tools.tools.set(name, { inputSchema: inputSchema as { type: 'object' }, run: () => saysText('found') });
    }
    const mcp_servers = [{ name: 'odd', url: tools.url }];
    const { id: agentId } = await api.newAgent({ name: 'Clerk', mcp_servers });
    const calls = [{ name: 'odd__plain', arguments: '{"id":"7"}' }];
    expect(await outcomes('schemas', [{ calls }, answers], () => ({ agentId }))).toEqual(everywhere(ANSWER));
    const given =
      endpoints
        .requests('gemini/schemas')
        .at(-1)
        ?.messages.filter(({ role }) => role === 'tool') ?? [];
    expect(given.map(({ content }) => String(content))).toEqual([expect.stringContaining('found')]);
  });

  it('answers an agent that has more tools than an endpoint accepts', async () => {
    tools.tools.clear();
    for (let number = 1; number <= 40; number += 1) tools.tools.set(`tool_${number}`, {});
    const mcp_servers = ['a', 'b', 'c', 'd'].map((name) => ({ name, url: tools.url }));
    const { id: agentId } = await api.newAgent({ name: 'Clerk', mcp_servers });
    endpoints.script('openai/tools', answers);
    expect(await outcome('openai/tools', () => ({ agentId }))).toBe(ANSWER);
  });

  it('says whether a message concerns an agent', async () => {
    const found = NAMES.map(async (family) => {
      const model = `${family}/relevance`;
      endpoints.script(model, { reasoning: ['It is ', 'about hours.'], text: ['yes'] }, answers);
      const { id } = await api.newAgent({ name: 'Ada', model_name: model });
      const participants = [{ type: 'agent', id }];
      const body = { name: 'Ask', participants, agent_invocation_behavior: 'intelligent' };
      const channel = (await api.call('POST', '/api/v1/channels', body)).json.id;
      const message = await api.post(channel, 'When does the warehouse open?');
      return [family, await judged(channel, message)] as const;
    });
    expect(Object.fromEntries(await Promise.all(found))).toEqual(everywhere('relevant by model'));
  });
});

describe('a parameter that an endpoint refuses', () => {
  it.each(['openai', 'kimi', 'mistral'])('is left out of all later requests to the model: %s', async (family) => {
    const model = `${family}/memory`;
    endpoints.script(model, answers);
    const { id: agentId } = await api.newAgent({ name: 'Ada', logic_model_temperature: 0.7 });
    const invocationConfig = { thinking_budget: 1_024 };
    const ask = (): Promise<string> => outcome(model, () => ({ agentId, invocationConfig }));
    expect(await ask()).toBe(ANSWER);
    const refused = endpoints.refused(model).length;
    expect(refused).toBeGreaterThan(0);
    expect(await ask()).toBe(ANSWER);
    expect(endpoints.refused(model)).toHaveLength(refused);
  });
});

/** The agent writes in a channel without being asked. */
async function speak(channelId: string, text: string): Promise<void> {
  const participant = { type: 'agent', agent_id: api.agentId };
  const content = [{ type: 'text', text }];
  const posted = await api.call('POST', `/api/v1/channels/${channelId}/interactions`, {
    content,
    participant,
    content_role: 'agent_response',
  });
  expect(posted.status).toBe(200);
}

function judged(channel: string, message: Json): Promise<string> {
  return eventually(async () => {
    const url = `/api/v1/channels/${channel}/invocations?message_id=${message.id}`;
    const [decision] = (await api.call('GET', url)).json.items;
    const { reason, relevance } = decision;
    return `${reason} by ${relevance.decided_by}${relevance.failure === null ? '' : `: ${relevance.failure}`}`;
  });
}

/** Of tools that servers really offer; each of them makes an endpoint refuse the whole request. */
const SCHEMAS: Readonly<Record<string, object>> = {
  plain: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
  // A property without a form (MarkusPfundstein/mcp-obsidian#21).
  object_without_properties: { type: 'object', properties: { query: { type: 'object' } } },
  // `required` inside `properties`, where it is a list.
  required_within: { type: 'object', properties: { a: { type: 'string' }, required: ['a'] } },
  // anomalyco/opencode#11889
  required_of_a_string: {
    type: 'object',
    properties: { data: { type: 'string', properties: { a: { type: 'string' } }, required: ['a'] } },
  },
  // github/copilot-cli#4623
  union_in_items: {
    type: 'object',
    properties: { rows: { type: 'array', items: { type: ['object', 'null'], properties: { a: { type: 'string' } } } } },
  },
  // anomalyco/opencode#2687
  enum_of_booleans: {
    type: 'object',
    properties: { on: { enum: [true, false] }, n: { type: 'integer', enum: [1, 2] } },
  },
  array_without_items: { type: 'object', properties: { list: { type: 'array' } } },
  required_without_property: { type: 'object', properties: { a: { type: 'string' } }, required: ['a', 'b'] },
  no_parameters: { type: 'object' },
};
