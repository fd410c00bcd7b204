/** Agents of every kind, and what comes of it when they are asked. */
import { eventually } from '#test/support/eventually.ts';
import { type Caller, itemsOf } from './caller.ts';
import { settled } from './fill-knowledge.ts';
import type { Neighbours } from './neighbours.ts';

export interface Agents {
  readonly helper: string;
  readonly second: string;
  readonly quoting: string;
  readonly external: string;
  readonly personal: string;
  readonly externalCaller: Caller;
}

const MODEL_FEATURES = { general_agent_search: true, general_web_search: true };

export async function fillAgents(
  api: Caller,
  graph: string,
  { tools, site }: Neighbours,
  round: string,
): Promise<Agents> {
  const create = (body: Record<string, unknown>): Promise<string> => api.create('/api/v1/agents', body);
  const helper = await create({
    name: `Helper ${round}`,
    description: 'Answers questions about the sea',
    knowledge_graph: graph,
    features: { ...MODEL_FEATURES, widget_enabled: true },
    instructions: 'Be brief.',
    interest_tags: ['lighthouse', 'ferry'],
    category: 'developer',
    mcp_servers: [{ name: 'orders', url: tools.url, token: 'secret' }],
  });
  const second = await create({
    name: `Second ${round}`,
    features: MODEL_FEATURES,
    mcp_servers: [{ name: 'away', url: `${site.origin}/nothing` }],
  });
  const quoting = await create({ name: `Third ${round}`, knowledge_graph: graph, tools: ['search_knowledge_graph'] });
  const external = await create({ name: `Echo ${round}`, runtime: 'external' });
  const personal = await create({ name: `Personal ${round}`, personal: true });
  const path = `/api/v1/agents/${helper}`;
  await api.patch(path, { images: { image_url: 'https://example.com/a.png' }, logic_model_temperature: 0.5 });
  await api.patch(path, { mcp_servers: [{ name: 'orders', url: tools.url, tools: ['find_order'] }] });
  await api.patch(`/api/v1/agents/${second}`, { runtime: 'external' });
  await api.patch(`/api/v1/agents/${second}`, { runtime: 'parley' });
  const gone = await create({ name: `Gone ${round}` });
  await api.post(`/api/v1/agents/${gone}/deactivate`);
  await api.post(`/api/v1/agents/${gone}/activate`);
  await api.post(`/api/v1/agents/${gone}/deactivate`);
  const { key } = await api.post('/api/v1/keys', {
    name: 'echo',
    scopes: ['agent'],
    principal: { type: 'service', id: external },
  });
  await api.post(`/api/v1/agents/${external}/webhook`, { url: `${site.origin}/hook` });
  return { helper, second, quoting, external, personal, externalCaller: api.withKey(String(key)) };
}

export async function fillAnswers(api: Caller, agents: Agents, ada: string): Promise<void> {
  const { helper, second, quoting, external, personal } = agents;
  const channel = await api.create('/api/v1/channels', {
    name: 'Questions',
    participants: [
      { type: 'authenticated_user', user_id: ada },
      ...[helper, second, quoting, external, personal].map((id) => ({ type: 'agent', id })),
    ],
  });
  const ask = asker(api, channel, ada);
  const words = [
    '[search]',
    '[order]',
    '[wrong]',
    `[ask ${second}]`,
    `[mention ${second}]`,
    '[page]',
    '[fail]',
    '[length]',
    '[think]',
  ];
  for (const word of words) await ended(api, channel, await ask(`A question ${word}`, [helper]));
  await ended(api, channel, await ask('Where does the lighthouse of Bremerhaven stand?', [quoting, second]));
  // Cancelled while the model answers, while it waits, and replaced.
  const hanging = await ask('[hang]', [helper]);
  const waiting = await ask('And then?', [helper]);
  await api.post(`/api/v1/runs/${await runOf(api, channel, waiting)}/cancel`);
  const run = await runOf(api, channel, hanging);
  await eventually(async () => (await api.get(`/api/v1/runs/${run}`))['status'] === 'running');
  await api.post(`/api/v1/runs/${run}/cancel`);
  for (const message of [hanging, waiting]) await ended(api, channel, message);
  await api.patch(`/api/v1/channels/${channel}`, { run_concurrency: 'restart' });
  const replaced = await ask('[hang] first', [helper]);
  await runOf(api, channel, replaced);
  const replacing = await ask('second', [helper]);
  for (const message of [replaced, replacing]) await ended(api, channel, message);
  await fillExternal(api, agents, channel, ask);
  await fillBehaviours(api, channel, ask);
  await fillPrompts(api, helper);
}

/** Answers, fails and ignores what an external agent is asked. */
async function fillExternal(
  api: Caller,
  { external, externalCaller }: Agents,
  channel: string,
  ask: Ask,
): Promise<void> {
  const answered = await runOf(api, channel, await ask('Echo this', [external]));
  const at = `/api/v1/runs/${answered}`;
  await eventually(async () => (await api.get(at))['status'] === 'running');
  await externalCaller.get(`${at}/conversation`);
  await externalCaller.post(`${at}/deltas`, { offset: null, text: 'Echo' });
  // Versions before tool calls of programs answer 404.
  const content = { type: 'tool_call', tool_name: 'clock', tool_args: {}, tool_call_id: 'call-1' };
  await externalCaller.fetch('POST', `${at}/interactions`, { content: [content] });
  await externalCaller.post(`${at}/response`, { text: 'Echo: this' });
  await settled(api, at);
  const failed = await runOf(api, channel, await ask('Fail at this', [external]));
  await eventually(async () => (await api.get(`/api/v1/runs/${failed}`))['status'] === 'running');
  await externalCaller.post(`/api/v1/runs/${failed}/failure`, { message: 'It cannot be done' });
  await settled(api, `/api/v1/runs/${failed}`);
  const cancelled = await runOf(api, channel, await ask('Never mind', [external]));
  await eventually(async () => (await api.get(`/api/v1/runs/${cancelled}`))['status'] === 'running');
  await api.post(`/api/v1/runs/${cancelled}/cancel`);
  await settled(api, `/api/v1/runs/${cancelled}`);
}

async function fillBehaviours(api: Caller, channel: string, ask: Ask): Promise<void> {
  for (const behaviour of ['all_messages_personal_agent', 'intelligent']) {
    await api.patch(`/api/v1/channels/${channel}`, { agent_invocation_behavior: behaviour, run_concurrency: null });
    await ended(api, channel, await ask('The lighthouse of Bremerhaven and its ferry', []));
  }
}

async function fillPrompts(api: Caller, helper: string): Promise<void> {
  const path = `/api/v1/agents/${helper}`;
  await api.post(`${path}/prompt`, { prompt: 'A prompt' }, { 'idempotency-key': `prompt-${helper}` });
  const failed = await api.fetch('POST', `${path}/prompt`, { prompt: '[fail]' });
  if (failed.status !== 502) throw new Error(`a failing prompt answers ${failed.status}`);
  const streamed = await api.fetch('POST', `${path}/stream_prompt`, { prompt: 'A streamed one' });
  await streamed.text();
  const { conversation_id } = await api.withKey(null).post(`${path}/public_prompt`, { prompt: 'Of the public' });
  await api.withKey(null).post(`${path}/public_prompt`, { prompt: 'Again', conversation_id });
}

type Ask = (words: string, agents: readonly string[]) => Promise<string>;

function asker(api: Caller, channel: string, user: string): Ask {
  return (words, agents) =>
    api.create(`/api/v1/channels/${channel}/interactions`, {
      content: [{ type: 'text', text: words }],
      participant: { type: 'authenticated_user', user_id: user },
      invocation_config: {
        mentions: agents.map((id) => ({ type: 'agent', id, identifier: id, identifier_type: 'uuid' })),
      },
    });
}

const decisions = async (api: Caller, channel: string, message: string): Promise<Record<string, unknown>[]> =>
  itemsOf(await api.get(`/api/v1/channels/${channel}/invocations?message_id=${message}`));

/** @returns the first run of a message, once it is decided */
async function runOf(api: Caller, channel: string, message: string): Promise<string> {
  return eventually(async () => {
    const run = (await decisions(api, channel, message)).find(({ run_id }) => typeof run_id === 'string');
    if (run === undefined) throw new Error(`no run of ${message}`);
    await api.get(`/api/v1/runs/${String(run['run_id'])}`);
    return String(run['run_id']);
  });
}

/** Waits until all decisions on a message are made, and all runs of it have ended; those of an external agent stay open. */
async function ended(api: Caller, channel: string, message: string): Promise<void> {
  const { participants } = await api.get(`/api/v1/channels/${channel}`);
  const agents = (Array.isArray(participants) ? participants : []).filter(
    ({ type }: { type?: unknown }) => type === 'agent',
  );
  const all = await eventually(async () => {
    const found = await decisions(api, channel, message);
    if (found.length < agents.length)
      throw new Error(`${found.length} of ${agents.length} agents decided on ${message}`);
    return found;
  });
  for (const { run_id } of all) {
    if (typeof run_id === 'string' && !(await isExternal(api, run_id))) await settled(api, `/api/v1/runs/${run_id}`);
  }
}

async function isExternal(api: Caller, run: string): Promise<boolean> {
  const { agent_id } = await eventually(() => api.get(`/api/v1/runs/${run}`));
  return (await api.get(`/api/v1/agents/${String(agent_id)}`))['runtime'] === 'external';
}
