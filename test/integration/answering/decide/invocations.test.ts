/** Which agents answer the messages of a channel, on all stores with a worker. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { MAX_HOPS } from '#libs/features/answering/decide/invocation.ts';
import { streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { Step } from '#libs/platform/reactors/step.ts';
import { DocumentsApi } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';
import { type ModelServer, says, startModelServer } from '#test/support/model-server.ts';

// eslint-disable-next-line typescript/no-explicit-any -- tests assert the shape that they expect
type Json = any;

/** Also the slowest machine answers within this. */
const PATIENT_MS = 600_000;
/** Words decide, but for tests that say otherwise. */
const relevance = { timeoutMs: 0 };
let server: ModelServer;
let api: DocumentsApi;

beforeAll(async () => {
  server = await startModelServer();
  server.script(says({ text: ['Yes.'] }));
  const limits = { totalMs: PATIENT_MS, firstPartMs: PATIENT_MS, idleMs: PATIENT_MS };
  api = await DocumentsApi.start({ relevance, model: { baseUrl: server.baseUrl, name: 'small', limits } });
});
afterAll(async () => {
  await api?.stop();
  await server?.stop();
});

async function made(url: string, body: object): Promise<Json> {
  const reply = await api.call('POST', url, body);
  expect(reply.status).toBe(200);
  return reply.json;
}

const newAgent = async (body: object = {}): Promise<string> =>
  (await made('/api/v1/agents', { name: 'Ada', ...body })).id;

async function newChannel(agents: readonly string[], behavior: string | null = null): Promise<string> {
  const participants = agents.map((id) => ({ type: 'agent', id }));
  const body = { name: 'a', participants, agent_invocation_behavior: behavior };
  return (await made('/api/v1/channels', body)).id;
}

const mention = (id: string) => ({ type: 'agent', id, identifier: id, identifier_type: 'uuid' });
const mentioning = (...ids: string[]) => ({ invocation_config: { mentions: ids.map(mention) } });

function post(channel: string, body: object = {}, text = 'Hello'): Promise<Json> {
  return made(`/api/v1/channels/${channel}/interactions`, { content: [{ type: 'text', text }], ...body });
}

const list = async (channel: string, query = ''): Promise<Json> =>
  (await api.call('GET', `/api/v1/channels/${channel}/invocations?${query}`)).json;

/** The decisions on a message, by agent. */
function decided(channel: string, message: Json, count: number): Promise<Record<string, Json>> {
  return eventually(async () => {
    const { items } = await list(channel, `message_id=${message.id}`);
    expect(items).toHaveLength(count);
    return Object.fromEntries(items.map((one: Json) => [one.agent_id, one]));
  });
}

const reasons = async (channel: string, message: Json, agents: readonly string[]): Promise<string[]> => {
  const found = await decided(channel, message, agents.length);
  return agents.map((id) => found[id].reason);
};

/** To two workers. */
async function deliverAgain(channel: string, message: Json): Promise<void> {
  const { platform } = api.api.stores;
  const invocations = api.api.features.reactors.find(({ name }) => name === 'invocations');
  if (invocations === undefined) throw new Error('there is no such reactor');
  const from = streamRevision(message.sequence - 1);
  for await (const stored of platform.store.readStream(`channel-${channel}`, { from, limit: 1 })) {
    const step = new Step(invocations, platform, stored);
    const attempt = { failures: 0, lastError: null, signal: new AbortController().signal };
    const results = await Promise.all([step.attempt(attempt), step.attempt(attempt)]);
    expect(results).toEqual([
      { kind: 'done', isGivenUp: false },
      { kind: 'done', isGivenUp: false },
    ]);
  }
}

describe('a message', () => {
  it('invokes the agents that it mentions, by their ids', async () => {
    const [ada, eve] = [await newAgent(), await newAgent({ name: 'Eve' })];
    const channel = await newChannel([ada, eve]);
    const message = await post(channel, mentioning(ada), '@Eve, hello');
    const found = await decided(channel, message, 2);
    const about = {
      message_id: message.id,
      sequence: message.sequence,
      interaction_id: message.interaction_id,
      depth: 0,
    };
    expect(found[ada]).toEqual({
      ...about,
      agent_id: ada,
      invoked: true,
      reason: 'mentioned',
      run_id: expect.any(String),
      at: expect.any(String),
      relevance: null,
    });
    expect(found[eve]).toMatchObject({ ...about, invoked: false, reason: 'not_mentioned', run_id: null });
  });

  it('is answered by the run that its decision names', async () => {
    const ada = await newAgent();
    const channel = await newChannel([ada], 'all_messages');
    const message = await post(channel);
    const { run_id } = (await decided(channel, message, 1))[ada];
    const run = await eventually(async () => {
      const { json } = await api.call('GET', `/api/v1/runs/${run_id}`);
      expect(json.status).toBe('completed');
      return json;
    });
    const about = { agent_id: ada, channel_id: channel, message_id: message.id, depth: 0 };
    expect(run).toMatchObject({ ...about, interaction_id: message.interaction_id });
    const response = (await api.call('GET', `/api/v1/interactions/${run.response_id}`)).json;
    expect(response).toMatchObject({ participant: { agent_id: ada }, parent_span_id: message.span_id });
    expect(await reasons(channel, response, [ada])).toEqual(['own_message']);
  });

  it('invokes agents as the channel has it', async () => {
    const [ada, own, off] = [await newAgent(), await newAgent({ personal: true }), await newAgent()];
    const agents = [ada, own, off];
    const channel = await newChannel(agents, 'all_messages');
    await made(`/api/v1/agents/${off}/deactivate`, {});
    expect(await reasons(channel, await post(channel), agents)).toEqual(['all_messages', 'all_messages', 'inactive']);
    const withheld = await post(channel, { invocation_config: { withheld_mentions: [mention(ada)] } });
    expect(await reasons(channel, withheld, agents)).toEqual(['withheld', 'all_messages', 'inactive']);
    const behavior = { agent_invocation_behavior: 'all_messages_personal_agent' };
    await api.call('PATCH', `/api/v1/channels/${channel}`, behavior);
    const other = await post(channel);
    expect(await reasons(channel, other, agents)).toEqual(['not_personal', 'personal_agent', 'inactive']);
    expect((await list(channel, 'invoked=true')).meta.total).toBe(4);
    const ofOne = await list(channel, `agent_id=${ada}&message_id=${other.id}`);
    expect(ofOne).toMatchObject({ items: [{ agent_id: ada, invoked: false }], meta: { total: 1 } });
  });

  it('invokes the agents that know what it is about, where the channel is intelligent', async () => {
    const graph = await api.newGraph();
    await made(`/api/v1/knowledge/${graph}/facts`, {
      edges: [{ source: 'Warehouse', target: 'Bremen', fact: 'The warehouse in Bremen opens its gate at nine' }],
    });
    const knowing = await newAgent({ knowledge_graph: graph });
    const described = await newAgent({ description: 'Knows when warehouses open' });
    const agents = [knowing, described];
    const channel = await newChannel(agents, 'intelligent');
    const about = await post(channel, {}, 'When does the warehouse in Bremen open?');
    expect(await reasons(channel, about, agents)).toEqual(['relevant', 'relevant']);
    const other = await post(channel, {}, 'Bremen is nice in summer, nine of ten say');
    expect(await reasons(channel, other, agents)).toEqual(['irrelevant', 'irrelevant']);
    const only = await post(channel, {}, 'The gate at nine?');
    expect(await reasons(channel, only, agents)).toEqual(['relevant', 'irrelevant']);
    const { [knowing]: decision } = await decided(channel, only, 2);
    const costs = { input_tokens: null, output_tokens: null, cost: null };
    expect(decision.relevance).toEqual({ decided_by: 'words', model: null, failure: null, ...costs });
  });

  it('invokes the agents that the model names, where the channel is intelligent and there is a model', async () => {
    const agents = [await newAgent({ name: 'Grace' }), await newAgent({ name: 'Rain in summer' })];
    const [grace = '', rain = ''] = agents;
    const channel = await newChannel(agents, 'intelligent');
    const questions = () => server.requests.filter(({ body }) => body['max_tokens'] !== undefined);
    server.script((response, request) => {
      const isGrace = request.body.messages[0]?.content?.includes('Grace') === true;
      return says({ text: [isGrace ? 'yes' : 'no'] })(response, request);
    });
    relevance.timeoutMs = PATIENT_MS;
    try {
      const message = await post(channel, {}, 'Rain in summer?');
      const found = await decided(channel, message, 2);
      const costs = { input_tokens: 12, output_tokens: 5, cost: null };
      const byModel = { decided_by: 'model', model: 'small', failure: null, ...costs };
      expect(found[grace]).toMatchObject({ reason: 'relevant', invoked: true, relevance: byModel });
      expect(found[rain]).toMatchObject({ reason: 'irrelevant', invoked: false, relevance: byModel });
      const mentioned = await post(channel, mentioning(grace, rain), 'Rain?');
      expect(await reasons(channel, mentioned, agents)).toEqual(['mentioned', 'mentioned']);
      expect(questions()).toHaveLength(2);

      // Delivered again, it is neither asked nor decided again.
      server.script(says({ text: ['no'] }));
      await deliverAgain(channel, message);
      expect(await decided(channel, message, 2)).toEqual(found);
      expect(questions()).toHaveLength(2);
    } finally {
      relevance.timeoutMs = 0;
      server.script(says({ text: ['Yes.'] }));
    }
  });

  it('invokes agents once it is complete', async () => {
    const ada = await newAgent();
    const channel = await newChannel([ada], 'all_messages');
    const message = await post(channel, { complete: false });
    const later = await post(channel);
    await decided(channel, later, 1);
    expect((await list(channel, `message_id=${message.id}`)).items).toEqual([]);
    await made(`/api/v1/interactions/${message.id}/complete`, {});
    expect(await reasons(channel, message, [ada])).toEqual(['all_messages']);
  });

  it('of another kind, or where no agent is, is not decided', async () => {
    const ada = await newAgent();
    const [channel, empty] = [await newChannel([ada], 'all_messages'), await newChannel([], 'all_messages')];
    await post(empty);
    const sender = { participant: { type: 'agent', agent_id: newId() } };
    const others: Json[] = [];
    for (const content_role of ['agent_reasoning', 'internal_error', 'channel_notification']) {
      others.push(await post(channel, { ...sender, ...mentioning(ada), content_role }));
    }
    await decided(channel, await post(channel), 1);
    for (const { id } of others) expect((await list(channel, `message_id=${id}`)).items).toEqual([]);
    expect((await list(empty)).items).toEqual([]);
  });
});

describe('a message in a channel without agents', () => {
  const attempts = async (): Promise<string | undefined> =>
    /reactor_attempts_total\{reactor="invocations".*/.exec(await api.api.stores.platform.metrics.scrape())?.[0];

  it('takes no step of a worker', async () => {
    const ada = await newAgent();
    const [channel, empty] = [await newChannel([ada]), await newChannel([])];
    await decided(channel, await post(channel), 1);
    // An attempt of another test, which is counted after its outcome, may be counted meanwhile: then it is counted again.
    await eventually(async () => {
      const before = await attempts();
      for (let n = 0; n < 5; n++) await post(empty);
      // The group delivers what was posted before it first.
      await decided(channel, await post(channel), 1);
      expect(before).toMatch(/ \d+$/);
      const next = before?.replace(/\d+$/, (count) => `${+count + 1}`);
      await eventually(async () => expect(await attempts()).toBe(next), { timeoutMs: 5_000 });
    });
  });

  it('is answered by an agent that has joined before it, though both come at once', async () => {
    const agents = await Promise.all(Array.from({ length: 10 }, () => newAgent()));
    const joined = agents.map(async (id) => {
      const channel = await newChannel([], 'all_messages');
      const path = `/api/v1/channels/${channel}/participants`;
      const [first, , ...later] = await Promise.all([
        post(channel),
        made(path, { type: 'agent', id }),
        post(channel),
        post(channel),
      ]);
      later.push(await post(channel));
      let joinedAt = 0;
      for await (const { type, revision } of api.api.stores.platform.store.readStream(`channel-${channel}`))
        if (type === 'ParticipantAdded.v1') joinedAt = revision + 1;
      expect(joinedAt).toBeGreaterThan(0);
      for (const message of [first, ...later].filter(({ sequence }) => sequence > joinedAt))
        expect(await reasons(channel, message, [id])).toEqual(['all_messages']);
    });
    await Promise.all(joined);
  });
});

describe('a message that mentions an agent in vain', () => {
  it('is decided on, so that nothing waits for an answer', async () => {
    const [ada, eve, removed] = [await newAgent(), await newAgent(), await newAgent()];
    const channel = await newChannel([ada, removed]);
    const participants = `/api/v1/channels/${channel}/participants`;
    const joined = (await api.call('GET', participants)).json.items;
    const { participant_id } = joined.find(({ participant }: Json) => participant.id === removed);
    expect((await api.call('DELETE', `${participants}/${participant_id}`)).status).toBe(200);
    // The last one is in no organization.
    const message = await post(channel, mentioning(eve, removed, newId()));
    const expected = ['not_mentioned', 'not_participant', 'not_participant'];
    expect(await reasons(channel, message, [ada, eve, removed])).toEqual(expected);
    const [decision] = (await list(channel, `agent_id=${eve}`)).items;
    expect(decision).toMatchObject({ message_id: message.id, invoked: false, run_id: null, depth: 0 });
  });

  it('is decided on in a channel that was archived meanwhile', async () => {
    const [ada, eve] = [await newAgent(), await newAgent()];
    const channel = await newChannel([ada, eve], 'all_messages');
    await api.stopWorker();
    const message = await post(channel, mentioning(ada));
    expect((await api.call('POST', `/api/v1/channels/${channel}/archive`)).status).toBe(200);
    await api.startWorker();
    expect(await reasons(channel, message, [ada])).toEqual(['channel_archived']);
  });
});

describe('a message that is delivered again', () => {
  it('keeps its decisions, also where another would be made by now', async () => {
    const ada = await newAgent();
    const channel = await newChannel([ada]);
    const message = await post(channel);
    expect(await reasons(channel, message, [ada])).toEqual(['not_mentioned']);
    await api.call('PATCH', `/api/v1/channels/${channel}`, { agent_invocation_behavior: 'all_messages' });
    await deliverAgain(channel, message);
    expect(await reasons(channel, message, [ada])).toEqual(['not_mentioned']);
    expect(await reasons(channel, await post(channel), [ada])).toEqual(['all_messages']);
  });
});

describe('agents that mention each other', () => {
  it('stop after some hops, which the channel shows once', async () => {
    const [ada, eve] = [await newAgent(), await newAgent({ name: 'Eve' })];
    const channel = await newChannel([ada, eve]);
    const root = await post(channel, mentioning(ada));
    expect((await decided(channel, root, 2))[ada]).toMatchObject({ reason: 'mentioned', depth: 0 });
    let [speaker, other] = [ada, eve];
    // Each answers the root, so that the tree does not show how far they are.
    for (let hops = 1; hops <= MAX_HOPS; hops++) {
      const participant = { type: 'agent', agent_id: speaker };
      const said = await post(channel, { participant, parent_span_id: root.span_id, ...mentioning(speaker, other) });
      const found = await decided(channel, said, 2);
      const reason = hops < MAX_HOPS ? 'mentioned' : 'depth_cap';
      expect(found[other]).toMatchObject({ reason, depth: hops, invoked: hops < MAX_HOPS });
      expect(found[speaker]).toMatchObject({ reason: 'own_message', invoked: false });
      [speaker, other] = [other, speaker];
    }
    const query = 'content_role=channel_notification';
    const shown = await eventually(async () => {
      const { items } = (await api.call('GET', `/api/v1/channels/${channel}/interactions?${query}`)).json;
      expect(items).toHaveLength(1);
      return items;
    });
    expect(shown).toMatchObject([
      { participant: { type: 'system' }, interaction_id: root.interaction_id, metadata: { reason: 'depth_cap' } },
    ]);
    const next = await post(channel, mentioning(ada));
    expect(await reasons(channel, next, [ada, eve])).toEqual(['mentioned', 'not_mentioned']);
  });

  it('record the depth of the run that wrote a message, where the message mentions no agent', async () => {
    const [ada, eve] = [await newAgent(), await newAgent({ name: 'Eve' })];
    const channel = await newChannel([ada, eve]);
    const root = await post(channel, mentioning(ada));
    const runOf = (found: Record<string, Json>, agent: string): string => found[agent].run_id;
    const first = runOf(await decided(channel, root, 2), ada);
    const say = (agent: string, body: object): Promise<Json> =>
      post(channel, { participant: { type: 'agent', agent_id: agent }, parent_span_id: root.span_id, ...body });
    const depthOf = async (message: Json, agent: string): Promise<number> =>
      (await decided(channel, message, 2))[agent].depth;
    const asked = runOf(await decided(channel, await say(ada, mentioning(eve)), 2), eve);
    const second = runOf(await decided(channel, await say(eve, mentioning(ada)), 2), ada);
    // Ada is invoked at the depths 0 and 2.
    expect(await depthOf(await say(ada, { metadata: { run_id: first } }), ada)).toBe(1);
    expect(await depthOf(await say(ada, { metadata: { run_id: second } }), ada)).toBe(3);
    // Mentions count from the deepest one, and so do messages that name a run of another agent, or none.
    expect(await depthOf(await say(ada, { metadata: { run_id: first }, ...mentioning(eve) }), eve)).toBe(3);
    for (const id of [asked, newId(), 'none', 1]) {
      expect(await depthOf(await say(ada, { metadata: { run_id: id } }), ada)).toBe(3);
    }
  });
});

describe('the list of invocations', () => {
  it('is that of a channel of the organization', async () => {
    const channel = await newChannel([]);
    const url = (id: string) => `/api/v1/channels/${id}/invocations`;
    const foreign = await api.call('GET', url(channel), undefined, {}, api.foreignKey);
    const missing = await api.call('GET', url(newId()), undefined, {}, api.foreignKey);
    expect([foreign.status, foreign.bytes]).toEqual([404, missing.bytes]);
    expect((await api.call('GET', `${url(channel)}?agent_id=no%20agent`)).status).toBe(422);
  });
});
