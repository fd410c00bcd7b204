/* Permissions of a key's scopes: the principals that it may act as, and the keys that it may manage. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { FIRST_ORGANIZATION } from '#services/first-organization.ts';
import { newId } from '#libs/kernel/ids.ts';
import { composeFeatures } from '#services/features.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';
import { composeUnapplied } from '#test/support/unapplied-writer.ts';

let api: TestApi;
let ada: { readonly id: string; readonly key: string };
let bob: { readonly id: string; readonly key: string };
/** A service that may read and write. */
let robot: string;
/** A service that may impersonate, too. */
let bridge: string;
let channel: string;

beforeAll(async () => {
  api = await startTestApi();
  [ada, bob] = [await newUser(), await newUser()];
  robot = (await newKey({ principal: { type: 'service', id: 'robot' } })).key;
  const scopes = ['read', 'write', 'impersonate'];
  bridge = (await newKey({ principal: { type: 'service', id: 'bridge' }, scopes })).key;
  channel = (await send(ada.key, 'POST', '/api/v1/channels', { name: 'Lab' })).json.id;
});
afterAll(() => api.stop());

function send(key: string, method: Call['method'], url: string, body?: object): Promise<Answer> {
  return api.call({ method, url, key, ...(body !== undefined && { body }) });
}
const root = (method: Call['method'], url: string, body?: object): Promise<Answer> =>
  send(api.rootKey, method, url, body);

async function newKey(body: object = {}, key = api.rootKey): Promise<{ id: string; key: string; expires_at: string }> {
  const answer = await send(key, 'POST', '/api/v1/keys', {
    name: 'k',
    scopes: ['read', 'write'],
    access: 'organization',
    ...body,
  });
  expect(answer.status).toBe(200);
  return answer.json;
}

async function newUser(): Promise<{ id: string; key: string }> {
  const { id } = (await root('POST', '/api/v1/users', { display_name: 'A user' })).json;
  return { id, key: (await newKey({ principal: { type: 'user', id } })).key };
}

const post = (key: string, body: object = {}): Promise<Answer> =>
  send(key, 'POST', `/api/v1/channels/${channel}/interactions`, { content: [], ...body });
const missing = (scope: string): object => ({
  status: 403,
  json: { code: 'missing_scope', detail: expect.stringContaining(scope) },
});
const inAnHour = (): string => new Date(Date.now() + 3_600_000).toISOString();
const inTwoHours = (): string => new Date(Date.now() + 7_200_000).toISOString();

const outsiders = [
  { type: 'agent', agent_id: 'agent-1' },
  { type: 'external_agent', agent_metadata: { name: 'Helper' } },
  { type: 'non_authenticated_user', user_metadata: null },
  { type: 'maybe_user', email: 'eve@example.org' },
];

describe('a key without the scope impersonate', () => {
  it('of a user posts as that user only', async () => {
    const own = { type: 'authenticated_user', user_id: ada.id };
    expect((await post(ada.key)).json.participant).toEqual(own);
    expect((await post(ada.key, { participant: own })).status).toBe(200);
    const others = [{ type: 'authenticated_user', user_id: bob.id }, { type: 'system' }, ...outsiders];
    for (const participant of others) {
      expect(await post(ada.key, { participant })).toMatchObject(missing('impersonate'));
      const posted = await post(bridge, { participant });
      expect([posted.status, posted.json.participant]).toEqual([200, expect.objectContaining(participant)]);
    }
  });

  it('of a service posts as itself, as agents and for people without an account, and not as a user or as system', async () => {
    const own = { type: 'external_agent', agent_metadata: { service: 'robot' } };
    expect((await post(robot)).json).toMatchObject({ participant: own, content_role: 'agent_response' });
    for (const participant of outsiders) expect((await post(robot, { participant })).status).toBe(200);
    for (const participant of [{ type: 'authenticated_user', user_id: ada.id }, { type: 'system' }]) {
      expect(await post(robot, { participant })).toMatchObject(missing('impersonate'));
    }
  });

  it('appends only content that it may post itself to an interaction of another, but can end it', async () => {
    const { id } = (await post(bob.key, { complete: false })).json;
    const steps = [
      ['content', { content: [{ type: 'text', text: 'x' }] }],
      ['deltas', { text: 'x' }],
      ['complete', {}],
    ] as const;
    for (const [step, body] of steps) {
      const url = `/api/v1/interactions/${id}/${step}`;
      for (const key of [ada.key, robot])
        expect(await send(key, 'POST', url, body)).toMatchObject(missing('impersonate'));
    }
    for (const key of [bob.key, bridge]) {
      expect((await send(key, 'POST', `/api/v1/interactions/${id}/deltas`, { text: 'x' })).status).toBe(200);
    }
    // Its client may have crashed, and incomplete interactions are limited: any key that may write can end one.
    expect((await send(ada.key, 'POST', `/api/v1/interactions/${id}/fail`, {})).status).toBe(200);
  });

  it('of a user does not react, read or type as an agent', async () => {
    const { id } = (await post(bob.key)).json;
    const reaction = `/api/v1/interactions/${id}/reactions/${encodeURIComponent('👍')}`;
    const calls = [
      ['PUT', reaction, { agent_id: 'agent-1' }],
      ['DELETE', `${reaction}?agent_id=agent-1`, undefined],
      ['POST', `/api/v1/interactions/${id}/read_receipts`, { agent_id: 'agent-1' }],
    ] as const;
    for (const [method, url, body] of calls) {
      expect(await send(ada.key, method, url, body)).toMatchObject(missing('impersonate'));
      expect((await send(robot, method, url, body)).status).toBe(200);
    }
    expect((await send(ada.key, 'PUT', reaction)).status).toBe(200);
  });

  it('has the same limits over a socket', async () => {
    const { realtime } = composeFeatures(api.stores.platform);
    const grant = {
      organizationId: FIRST_ORGANIZATION,
      channelId: channel,
      principalType: 'user' as const,
      principalId: ada.id,
      keyId: (await root('GET', `/api/v1/keys?principal_id=${ada.id}`)).json.items[0].id,
      takesPart: true,
      isMember: false,
      expiresAtMs: null,
    };
    const run = (scopes: string[], type: string, data: object) =>
      realtime.commands.run({ ...grant, scopes }, { id: newId(), type, data }, { id: newId() });
    const { id } = (await post(bob.key)).json;
    const commands = [
      ['interaction.post', { content: [], participant: { type: 'system' } }],
      ['reaction.add', { interaction_id: id, emoji: '👍', agent_id: 'agent-1' }],
      ['reaction.remove', { interaction_id: id, emoji: '👍', agent_id: 'agent-1' }],
      ['typing', { agent_id: 'agent-1' }],
    ] as const;
    for (const [type, data] of commands) {
      expect(await run(['read', 'write'], type, data)).toMatchObject({ ok: false, code: 'missing_scope' });
      expect(await run(['read', 'write', 'impersonate'], type, data)).toMatchObject({ ok: true });
    }
  });
});

describe('a key', () => {
  it('revokes only keys whose scopes it has', async () => {
    const admin = (await newKey({ scopes: ['read', 'write', 'admin'] })).key;
    for (const scope of ['platform', 'impersonate']) {
      const stronger = await newKey({ scopes: ['read', scope] });
      expect(await send(admin, 'POST', `/api/v1/keys/${stronger.id}/revoke`)).toMatchObject(missing(scope));
      expect((await send(stronger.key, 'GET', '/api/v1/users')).status).toBe(200);
    }
    const equal = await newKey({ scopes: ['admin', 'write'] });
    expect((await send(admin, 'POST', `/api/v1/keys/${equal.id}/revoke`)).status).toBe(200);
  });

  it('that expires creates keys that expire no later', async () => {
    const admin = await newKey({ scopes: ['read', 'admin'], expires_at: inAnHour() });
    const create = (body: object): Promise<Answer> =>
      send(admin.key, 'POST', '/api/v1/keys', { name: 'k', scopes: ['read'], ...body });
    const outlives = { status: 403, json: { code: 'outlives_caller' } };
    expect(await create({ expires_at: inTwoHours() })).toMatchObject(outlives);
    expect(await create({ expires_at: null })).toMatchObject(outlives);
    expect((await create({})).json.expires_at).toBe(admin.expires_at);
    const sooner = new Date(Date.now() + 60_000).toISOString();
    expect((await create({ expires_at: sooner })).json.expires_at).toBe(sooner);
  });

  it('that expires rotates itself and others to keys that expire no later', async () => {
    const admin = await newKey({ scopes: ['read', 'admin'], expires_at: inAnHour() });
    const lasting = await newKey({ scopes: ['read'] });
    const rotate = (id: string, body?: object): Promise<Answer> =>
      send(admin.key, 'POST', `/api/v1/keys/${id}/rotate`, body);
    const outlives = { status: 403, json: { code: 'outlives_caller' } };
    expect(await rotate(admin.id, { expires_at: null })).toMatchObject(outlives);
    expect(await rotate(admin.id, { expires_at: inTwoHours() })).toMatchObject(outlives);
    expect(await rotate(lasting.id)).toMatchObject(outlives);
    expect((await rotate(lasting.id, { expires_at: admin.expires_at })).json.expires_at).toBe(admin.expires_at);
    expect((await rotate(admin.id)).json.expires_at).toBe(admin.expires_at);
  });

  it('of a deactivated user is neither rotated nor created', async () => {
    const user = await newUser();
    const [key] = (await root('GET', `/api/v1/keys?principal_id=${user.id}`)).json.items;
    expect((await root('DELETE', `/api/v1/users/${user.id}`)).status).toBe(200);
    const rotated = await root('POST', `/api/v1/keys/${key.id}/rotate`);
    expect(rotated).toMatchObject({ status: 409, json: { code: 'user_not_active' } });
    expect((await root('GET', `/api/v1/keys/${key.id}`)).json.rotated_to).toBeNull();
    const body = { name: 'k', scopes: ['read'], principal: { type: 'user', id: user.id } };
    const refused = await root('POST', '/api/v1/keys', body);
    expect([refused.status, refused.json.detail[0].loc]).toEqual([422, ['body', 'principal', 'id']]);
  });

  it('of a deactivated user is not rotated before read models have the deactivation, either', async () => {
    const user = await newUser();
    const [key] = (await root('GET', `/api/v1/keys?principal_id=${user.id}`)).json.items;
    const startProjector = await api.stopProjector();
    try {
      const { users } = composeUnapplied(api.stores.platform);
      const actor = { type: 'system' as const, id: 'test' };
      const context = { commandId: newId(), organizationId: api.organizationId, actor, at: new Date().toISOString() };
      expect((await users.deactivate(context, user.id)).ok).toBe(true);
      expect((await root('GET', `/api/v1/users/${user.id}`)).json.is_active).toBe(true);
      expect((await root('POST', `/api/v1/keys/${key.id}/rotate`)).json.code).toBe('user_not_active');
    } finally {
      await startProjector();
    }
  });
});
