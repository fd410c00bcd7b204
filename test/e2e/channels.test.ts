/* Channels over HTTP, as the contract (2.1 to 2.3, 4.1) and the conventions specify them. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient, Reply } from '#test/support/api-client.ts';
import { asRecord } from '#test/support/log-reader.ts';
import { listChannels } from '#test/support/observation.ts';
import { startParleyHere, type ParleyHere } from '#test/support/parley-here.ts';
import { newTenant, type Tenant } from '#test/support/tenants.ts';

let parley: ParleyHere;
let tenant: Tenant;
let api: ApiClient;

beforeAll(async () => {
  parley = await startParleyHere();
  tenant = await newTenant(parley.api);
  api = tenant.api;
});

afterAll(async () => {
  api?.close();
  await parley?.stop();
});

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const UNKNOWN = '01900000-0000-7000-8000-000000000000';

const at = (id: unknown, rest = ''): string => `/api/v1/channels/${String(id)}${rest}`;
const read = (id: unknown): Promise<Reply> => api.get(at(id));

async function create(body: object = {}, client = api): Promise<Record<string, unknown>> {
  const reply = await client.post('/api/v1/channels', { name: 'A channel', ...body });
  if (reply.status !== 200) throw new Error(`${reply.status} ${reply.text}`);
  return asRecord(reply.json());
}

async function patch(id: unknown, body: object): Promise<Record<string, unknown>> {
  const reply = await api.patch(at(id), body);
  if (reply.status !== 200) throw new Error(`${reply.status} ${reply.text}`);
  return asRecord(reply.json());
}

describe('POST /channels', () => {
  it('answers with every field of the contract, and the defaults', async () => {
    const channel = await create();
    expect(channel).toEqual({
      id: expect.any(String),
      type: 'websocket',
      channel_type: 'chat',
      name: 'A channel',
      participants: [expect.objectContaining({ type: 'authenticated_user', user_id: tenant.userId })],
      created_at: expect.stringMatching(TIME),
      modified: channel['created_at'],
      meta_data: null,
      source: null,
      agent_invocation_behavior: null,
      parent_channel_id: null,
      origin_message_id: null,
      run_concurrency: null,
      owner_id: tenant.userId,
    });
    expect((await read(channel['id'])).json()).toEqual(channel);
  });

  it('keeps its input, character by character', async () => {
    const given = {
      type: 'sms',
      channel_type: 'multi_org_chat',
      name: ' \u0000 "Ünï\\cødé" \u2028 🎈 </script> ',
      meta_data: { constructor: 1, toString: null, '': [], nested: { a: [1.5, -0.25, 1e21, true, null, '\u0000'] } },
      source: 'health',
      agent_invocation_behavior: 'intelligent',
      run_concurrency: 'restart',
      participants: [],
    };
    const channel = await create(given);
    expect(channel).toMatchObject(given);
    expect((await read(channel['id'])).json()).toMatchObject(given);
  });
});

describe('PATCH /channels/{id}', () => {
  const settings = { agent_invocation_behavior: 'all_messages', run_concurrency: 'restart' };
  const full = { meta_data: { a: 1 }, ...settings, source: 'app_two' };

  it('keeps absent fields unchanged, and accepts an empty object', async () => {
    const channel = await create(full);
    expect(await patch(channel['id'], {})).toEqual(channel);
    const renamed = await patch(channel['id'], { name: 'Renamed' });
    expect(renamed).toEqual({ ...channel, name: 'Renamed', modified: renamed['modified'] });
    const marked = await patch(channel['id'], { meta_data: { b: { c: [2] } } });
    expect(marked).toEqual({ ...renamed, meta_data: { b: { c: [2] } }, modified: marked['modified'] });
    expect((await read(channel['id'])).json()).toEqual(marked);
  });

  it('clears nullable fields with null, and refuses a null name', async () => {
    const channel = await create(full);
    const nulls = { meta_data: null, agent_invocation_behavior: null, run_concurrency: null };
    const cleared = await patch(channel['id'], nulls);
    expect(cleared).toMatchObject({ ...nulls, name: 'A channel' });
    const refused = await api.patch(at(channel['id']), { name: null, meta_data: { late: true } });
    expect(refused.status).toBe(422);
    expect(refused.json()).toMatchObject({ detail: [{ type: 'string_type', loc: ['body', 'name'], input: null }] });
    expect((await read(channel['id'])).json()).toEqual(cleared);
  });

  it('accepts an empty name and every behaviour, and ignores unknown members', async () => {
    const { id } = await create();
    expect(await patch(id, { name: '' })).toMatchObject({ name: '' });
    for (const behavior of ['at_mentions_only', 'all_messages', 'all_messages_personal_agent', 'intelligent']) {
      expect(await patch(id, { agent_invocation_behavior: behavior })).toMatchObject({
        agent_invocation_behavior: behavior,
      });
    }
    const before = await patch(id, {});
    expect(await patch(id, { type: 'sms', id: UNKNOWN, created_at: 'x', participants: [], nonsense: 1 })).toEqual(
      before,
    );
  });

  it('writes nothing when nothing changes, and moves modified and ETag when something does', async () => {
    const { id } = await create(full);
    const first = await read(id);
    const same = await api.patch(at(id), { name: 'A channel', ...full });
    expect(same.headers.etag).toBe(first.headers.etag);
    expect(same.text).toBe(first.text);
    const changed = await api.patch(at(id), { meta_data: { a: 2 } });
    expect(changed.headers.etag).not.toBe(first.headers.etag);
    expect((await read(id)).headers.etag).toBe(changed.headers.etag);
    expect(String(asRecord(changed.json())['modified']) >= String(asRecord(first.json())['modified'])).toBe(true);
  });
});

describe('threads', () => {
  it('belong to a channel and a message, and are listed by their channel', async () => {
    const parent = await create();
    const message = await api.post(`/api/v1/channels/${String(parent['id'])}/interactions`, { content: [] });
    const given = { parent_channel_id: parent['id'], origin_message_id: asRecord(message.json())['id'] };
    const thread = await create(given);
    expect(thread).toMatchObject({ ...given, channel_type: 'thread' });
    expect(await create({ parent_channel_id: parent['id'] })).toMatchObject({ origin_message_id: null });
    const listed = await api.get(`/api/v1/channels?parent_channel_id=${String(parent['id'])}&channel_type=thread`);
    expect(listed.json()).toMatchObject({ meta: { total: 2 } });
  });

  it('need a channel of the organization, and nothing else may have a parent', async () => {
    const parent = (await create())['id'];
    const stranger = await newTenant(parley.api);
    const foreign = (await create({}, stranger.api))['id'];
    stranger.api.close();
    const bodies: [object, string][] = [
      [{ channel_type: 'thread' }, 'parent_channel_id'],
      [{ parent_channel_id: UNKNOWN }, 'parent_channel_id'],
      [{ parent_channel_id: foreign }, 'parent_channel_id'],
      [{ parent_channel_id: 'a b' }, 'parent_channel_id'],
      [{ parent_channel_id: parent, channel_type: 'chat' }, 'channel_type'],
      [{ origin_message_id: 'message-1' }, 'origin_message_id'],
      [{ parent_channel_id: parent, origin_message_id: 'message-1' }, 'origin_message_id'],
    ];
    for (const [body, field] of bodies) {
      const reply = await api.post('/api/v1/channels', { name: 'x', ...body });
      expect(reply.status).toBe(422);
      expect(reply.json()).toMatchObject({ detail: [{ loc: ['body', field] }] });
    }
  });
});

describe('participants', () => {
  const details = { name: 'Ada', website: 'https://ada.example/', images: { image_url: 'https://ada.example/a.png' } };

  async function newAgent(body: object = details): Promise<string> {
    return String(asRecord((await api.post('/api/v1/agents', body)).json())['id']);
  }

  it('of all four kinds have the shape of the contract', async () => {
    const agentId = await newAgent();
    const participants = [
      { type: 'authenticated_user', user_id: tenant.userId },
      { type: 'non_authenticated_user', user_metadata: { network: 'here' } },
      { type: 'agent', id: agentId, name: 'Not its name', is_verified: true },
      { type: 'external_agent', agent_metadata: { name: 'Eve' } },
      { type: 'non_authenticated_user' },
    ];
    const channel = await create({ participants });
    expect(channel['participants']).toEqual([
      {
        type: 'authenticated_user',
        user_id: tenant.userId,
        id: expect.any(String),
        display_name: expect.stringMatching(/^User of/),
        image_url: null,
        is_owner: true,
      },
      { type: 'non_authenticated_user', user_metadata: { network: 'here' } },
      {
        type: 'agent',
        id: agentId,
        chat_user_id: expect.any(String),
        name: 'Ada',
        description: '',
        is_active: true,
        organization: { id: tenant.organizationId, name: expect.any(String), owner: null, application: null },
        image_url: 'https://ada.example/a.png',
        personality: '',
        website: 'https://ada.example/',
        agent_capabilities: null,
        agent_url: null,
        agent_address: null,
        agent_handle: null,
        is_verified: false,
        allow_html_responses: false,
      },
      { type: 'external_agent', agent_metadata: { name: 'Eve' } },
      { type: 'non_authenticated_user', user_metadata: null },
    ]);
    const listed = await api.get(`/api/v1/channels?agent=${agentId}`);
    expect(listed.text).toContain(String(channel['id']));
  });

  it('are added and removed one by one, by the ids of their records, and users and agents only once', async () => {
    const { id } = await create({ participants: [] });
    const agent = { type: 'agent', id: await newAgent() };
    for (const one of [agent, agent, { type: 'external_agent' }, { type: 'external_agent' }]) {
      expect((await api.post(at(id, '/participants'), one)).status).toBe(200);
    }
    const listed = await participantIds(id);
    expect(listed).toHaveLength(3);
    expect((await api.delete(at(id, `/participants/${listed[1]}`))).status).toBe(200);
    expect((await api.delete(at(id, `/participants/${listed[1]}`))).status).toBe(404);
    expect((await api.delete(at(id, `/participants/${agent.id}`))).status).toBe(404);
    expect(await participantIds(id)).toEqual([listed[0], listed[2]]);
    expect((await api.delete(at(id, `/participants/${listed[0]}`))).json()).toMatchObject({
      participants: [{ type: 'external_agent', agent_metadata: null }],
    });
  });

  it('keep the details that an agent had when it joined', async () => {
    const agentId = await newAgent();
    const { id } = await create({ participants: [{ type: 'agent', id: agentId }] });
    await api.patch(`/api/v1/agents/${agentId}`, { name: 'Eve' });
    await api.post(`/api/v1/agents/${agentId}/deactivate`);
    expect((await read(id)).json()).toMatchObject({ participants: [{ id: agentId, name: 'Ada', is_active: true }] });
  });

  it('are users and active agents of the organization', async () => {
    const { id } = await create({ participants: [] });
    const stranger = await newTenant(parley.api);
    const foreign = String(asRecord((await stranger.api.post('/api/v1/agents', details)).json())['id']);
    stranger.api.close();
    const inactive = await newAgent();
    await api.post(`/api/v1/agents/${inactive}/deactivate`);
    const bodies = [
      { type: 'authenticated_user', user_id: stranger.userId },
      { type: 'authenticated_user', user_id: UNKNOWN },
      { type: 'authenticated_user' },
      { type: 'agent' },
      { type: 'agent', id: UNKNOWN },
      { type: 'agent', id: foreign },
      { type: 'agent', id: inactive },
      { type: 'external_agent', agent_metadata: { n: 1 } },
      { type: 'system' },
      {},
    ];
    for (const body of bodies) expect((await api.post(at(id, '/participants'), body)).status).toBe(422);
    expect(await participantIds(id)).toEqual([]);
    const refused = await api.post('/api/v1/channels', { name: 'x', participants: [{ type: 'agent', id: inactive }] });
    expect(refused.json()).toMatchObject({ detail: [{ loc: ['body', 'participants', 0, 'id'], input: inactive }] });
  });

  async function participantIds(id: unknown): Promise<string[]> {
    const { items } = asRecord((await api.get(at(id, '/participants'))).json());
    if (!Array.isArray(items)) throw new TypeError('no items');
    return items.map((item) => String(asRecord(item)['participant_id']));
  }
});

describe('an archived channel', () => {
  it('can be read but not changed, and moves from the list to the list of archived channels', async () => {
    const { id } = await create();
    expect((await api.post(at(id, '/archive'))).status).toBe(200);
    expect((await api.post(at(id, '/archive'))).status).toBe(200);
    expect((await read(id)).status).toBe(200);
    for (const refused of [
      await api.patch(at(id), { name: 'late' }),
      await api.post(at(id, '/participants'), { type: 'external_agent' }),
      await api.delete(at(id, `/participants/${UNKNOWN}`)),
    ]) {
      expect(refused.status).toBe(409);
      expect(refused.json()).toMatchObject({ detail: expect.any(String), code: 'archived' });
    }
    expect(await listChannels(api)).not.toContain(id);
    expect((await api.get('/api/v1/channels?archived=true')).text).toContain(String(id));
  });
});
