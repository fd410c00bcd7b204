/** Agents on all stores: what the API answers, and what it refuses. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { FEATURES } from '#libs/features/agents/agent.fields.ts';
import { newId } from '#libs/kernel/ids.ts';
import { DocumentsApi } from '#test/support/documents-api.ts';

const AGENTS = '/api/v1/agents';

// eslint-disable-next-line typescript/no-explicit-any -- tests assert the shape that they expect
type Json = any;

let api: DocumentsApi;
let graph: string;

beforeAll(async () => {
  api = await DocumentsApi.start({ hasWorker: false });
  graph = await api.newGraph();
});
afterAll(async () => {
  await api?.stop();
});

async function created(body: object = {}, key?: string): Promise<Json> {
  const reply = await api.call('POST', AGENTS, { name: 'Ada', ...body }, {}, key);
  expect(reply.status).toBe(200);
  return reply.json;
}

const at = (id: string, action = ''): string => `${AGENTS}/${id}${action}`;
const list = async (query = ''): Promise<Json> => (await api.call('GET', `${AGENTS}?${query}`)).json;
const idsOf = async (query: string): Promise<string[]> => (await list(query)).items.map(({ id }: Json) => id);

const place = {
  name: 'shop',
  display_name: 'The shop',
  provider_type: 'maps',
  street: 'Am Markt 1',
  city: 'Bremen',
  state: 'Bremen',
  postal_code: '28195',
  country: 'DE',
};

describe('an agent', () => {
  it('is answered with all fields of the contract and their defaults', async () => {
    const agent = await created();
    expect(agent).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'Ada',
      description: '',
      organization: {
        id: api.api.organizationId,
        name: expect.any(String),
        owner: { display_name: expect.any(String), image_url: expect.any(String) },
        application: null,
      },
      images: { image_url: null, banner_url: null },
      features: Object.fromEntries(FEATURES.map((name) => [name, false])),
      personality: '',
      personal: false,
      knowledge_graph: null,
      website: null,
      agent_capabilities: null,
      logic_model_temperature: 0.1,
      agent_address: null,
      agent_handle: null,
      voice_id: 'jqcCZkN6Knx8BJ5TBdYR',
      point_of_interest: null,
      category: null,
      interest_tags: [],
      meta_data: {},
      is_active: true,
      allow_html_responses: false,
      use_default_temperature: false,
      model_name: null,
      instructions: null,
      tools: null,
      mcp_servers: [],
      runtime: 'parley',
      webhook_url: null,
      created: expect.any(String),
      modified: expect.any(String),
    });
    expect((await api.call('GET', at(agent.id))).json).toEqual(agent);
    expect((await list('size=1')).items).toEqual([agent]);
  });

  it('keeps what it was created with', async () => {
    const body = {
      description: 'Answers questions about orders',
      images: { image_url: 'https://example.org/ada.png' },
      features: { general_web_search: true },
      personality: 'Brief',
      website: 'https://example.org/',
      agent_capabilities: 'Orders',
      logic_model_temperature: 0.7,
      agent_address: 'ada@example.org',
      agent_handle: 'ada',
      voice_id: 'voice-1',
      point_of_interest: { ...place, location: { coordinates: [8.8, 53.08] } },
      category: 'sales',
      interest_tags: ['orders'],
      meta_data: { team: { name: 'shop' } },
      allow_html_responses: true,
      model_name: 'large',
      instructions: 'Ask for the number of the order first.',
      tools: ['search_knowledge'],
    };
    const agent = await created({ ...body, knowledge_graph: graph });
    const { images, features, point_of_interest, ...others } = body;
    expect(agent).toMatchObject({ ...others, knowledge_graph: { id: graph, name: 'Library' } });
    expect(agent.images).toEqual({ ...images, banner_url: null });
    expect(agent.features).toMatchObject({ ...features, sms: false });
    expect(agent.point_of_interest).toEqual({
      ...point_of_interest,
      description: '',
      external_id: null,
      location: { type: 'Point', coordinates: [8.8, 53.08] },
      url: '',
      image_url: '',
      metadata: {},
    });
  });

  it('changes in what a PATCH names; null gives the default', async () => {
    const { id, ...before } = await created({ category: 'sales', images: { image_url: 'https://example.org/a' } });
    const patch = (body: object, headers = {}) => api.call('PATCH', at(id), body, headers);
    const named = await patch({
      description: 'New',
      features: { sms: true },
      images: { banner_url: 'https://b.example' },
    });
    expect(named.json).toMatchObject({ description: 'New', category: 'sales' });
    expect(named.json.features).toEqual({ ...before.features, sms: true });
    expect(named.json.images).toEqual({ image_url: 'https://example.org/a', banner_url: 'https://b.example' });
    const again = await patch({ description: 'New' });
    expect(again.headers['etag']).toBe(named.headers['etag']);
    const nothing = { category: null, description: null, features: null, images: null, knowledge_graph: null };
    const cleared = await patch(nothing);
    expect(cleared.json).toEqual({ id, ...before, ...cleared.json, category: null, description: '' });
    expect(cleared.json).toMatchObject({ features: before.features, images: { image_url: null, banner_url: null } });
    expect((await patch({ name: 'Late' }, { 'if-match': named.headers['etag'] })).status).toBe(412);
  });

  it('shows the name that its graph has now, and no deleted graph', async () => {
    const own = await api.newGraph();
    const { id } = await created({ knowledge_graph: own });
    expect(await idsOf(`knowledge_graph=${own}`)).toEqual([id]);
    await api.call('PATCH', `/api/v1/knowledge/${own}`, { name: 'Archive' });
    const renamed = { id: own, name: 'Archive' };
    expect((await api.call('GET', at(id))).json.knowledge_graph).toEqual(renamed);
    expect((await list(`knowledge_graph=${own}`)).items[0].knowledge_graph).toEqual(renamed);
    expect((await api.call('DELETE', `/api/v1/knowledge/${own}`)).status).toBe(204);
    expect((await api.call('GET', at(id))).json.knowledge_graph).toBeNull();
  });

  it('is deactivated and activated again', async () => {
    const { id } = await created();
    for (const [action, is_active] of [
      ['/deactivate', false],
      ['/deactivate', false],
      ['/activate', true],
    ] as const) {
      expect(await api.call('POST', at(id, action))).toMatchObject({ status: 200, json: { id, is_active } });
    }
    expect(await api.types(`agent-${id}`)).toEqual(['AgentCreated.v1', 'AgentDeactivated.v1', 'AgentActivated.v1']);
  });

  it('is read on the log by other features', async () => {
    const { id } = await created({ instructions: 'Be brief' });
    const { agents } = api.api.features;
    const { organizationId } = api.api;
    expect(await agents.agent(organizationId, id)).toMatchObject({ id, isActive: true, instructions: 'Be brief' });
    expect(await agents.agent(newId(), id)).toBeNull();
    expect(await agents.agent(organizationId, newId())).toBeNull();
  });

  it('belongs to its organization: for others it is missing', async () => {
    const { id } = await created();
    const foreign = await created({ name: 'Eve' }, api.foreignKey);
    const calls = [
      ['GET', ''],
      ['GET', '/events'],
      ['PATCH', ''],
      ['POST', '/deactivate'],
      ['POST', '/activate'],
    ] as const;
    for (const [method, action] of calls) {
      const body = method === 'PATCH' ? { name: 'Mine' } : undefined;
      const headers = action === '/events' ? { accept: 'text/event-stream' } : {};
      const reply = await api.call(method, at(id, action), body, headers, api.foreignKey);
      const missing = await api.call(method, at(newId(), action), body, headers, api.foreignKey);
      expect([reply.status, reply.bytes]).toEqual([404, missing.bytes]);
    }
    expect(await idsOf('size=100')).not.toContain(foreign.id);
    const foreignGraph = await api.newGraph(api.foreignKey);
    for (const unknown of [foreignGraph, newId()]) {
      const detail = [{ loc: ['body', 'knowledge_graph'], input: unknown }];
      for (const [method, url] of [
        ['POST', AGENTS],
        ['PATCH', at(id)],
      ] as const) {
        const reply = await api.call(method, url, { name: 'Ada', knowledge_graph: unknown });
        expect(reply).toMatchObject({ status: 422, json: { detail } });
      }
    }
    expect((await api.call('PATCH', at(id), { knowledge_graph: foreignGraph }, {}, api.foreignKey)).status).toBe(404);
  });
});

describe('a list of agents', () => {
  it('has all that match the filter, and personal ones only on request', async () => {
    const name = 'Listed & named';
    const research = (await created({ name, category: 'research' })).id;
    const sales = (await created({ name, category: 'sales' })).id;
    const personal = (await created({ name, category: 'sales', personal: true })).id;
    await api.call('POST', at(sales, '/deactivate'));
    const named = (query: string) => idsOf(`name=${encodeURIComponent(name)}&${query}`);
    expect(await named('')).toEqual([sales, research]);
    expect(await named('personal=true')).toEqual([personal]);
    expect(await named('category=sales')).toEqual([sales]);
    expect(await named('is_active=true')).toEqual([research]);
    expect(await named('is_active=false')).toEqual([sales]);
    expect(await idsOf('name=Listed')).toEqual([]);
    await api.call('PATCH', at(personal), { personal: null });
    expect(await named('size=1')).toEqual([personal]);
    expect((await list(`name=${encodeURIComponent(name)}&size=1`)).meta).toMatchObject({ total: 3, has_next: true });
  });
});

describe('a request about agents', () => {
  it.each([
    ['no name', {}, ['name']],
    ['a blank name', { name: ' ' }, ['name']],
    ['an unknown category', { category: 'pets' }, ['category']],
    ['a temperature above 2', { logic_model_temperature: 2.1 }, ['logic_model_temperature']],
    ['a number as a text', { description: 12 }, ['description']],
    ['a feature that is no boolean', { features: { sms: 'yes' } }, ['features', 'sms']],
    ['a script as a website', { website: 'javascript:alert(1)' }, ['website']],
    [
      'a script as the link of a place',
      { point_of_interest: { ...place, url: 'javascript:alert(1)' } },
      ['point_of_interest', 'url'],
    ],
    ['a place without a city', { point_of_interest: { ...place, city: undefined } }, ['point_of_interest', 'city']],
    ['an impossible graph', { knowledge_graph: 'no graph' }, ['knowledge_graph']],
  ])('is refused with %s', async (_title, body, loc) => {
    const named = loc[0] === 'name' ? body : { name: 'Ada', ...body };
    expect(await api.call('POST', AGENTS, named)).toMatchObject({
      status: 422,
      json: { detail: [{ loc: ['body', ...loc] }] },
    });
  });

  it('is refused with an impossible filter', async () => {
    for (const query of ['category=pets', 'is_active=maybe', 'personal=2', 'knowledge_graph=no%20graph']) {
      expect((await api.call('GET', `${AGENTS}?${query}`)).status).toBe(422);
    }
  });

  it('creates one agent if it is repeated', async () => {
    const headers = { 'idempotency-key': newId() };
    const [one, other] = [
      await api.call('POST', AGENTS, { name: 'Once' }, headers),
      await api.call('POST', AGENTS, { name: 'Once' }, headers),
    ];
    expect(other.bytes).toBe(one.bytes);
    expect(await idsOf('name=Once')).toEqual([one.json.id]);
  });
});
