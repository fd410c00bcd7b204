import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';
import { keysIn, nodeWith } from '#test/support/redis-commands.ts';

let api: TestApi;
/** Another organization, with a key that has all scopes in it. */
let foreign: { organizationId: string; userId: string; keyId: string; key: string };

beforeAll(async () => {
  api = await startTestApi();
  const organization = await root('POST', '/api/v1/organizations', { name: 'Other' });
  const organizationId = organization.json.id;
  const user = await root('POST', '/api/v1/users', { display_name: 'Eve', organization_id: organizationId });
  const key = await root('POST', '/api/v1/keys', {
    name: 'other',
    scopes: ['read', 'write', 'admin'],
    principal: { type: 'user', id: user.json.id },
    access: 'organization',
    organization_id: organizationId,
  });
  foreign = { organizationId, userId: user.json.id, keyId: key.json.id, key: key.json.key };
});
afterAll(() => api.stop());

function root(method: Call['method'], url: string, body?: object): Promise<Answer> {
  return api.call({ method, url, key: api.rootKey, ...(body !== undefined && { body }) });
}

async function keyWith(...scopes: string[]): Promise<string> {
  return (await root('POST', '/api/v1/keys', { name: 'limited', scopes, access: 'organization' })).json.key;
}

/** The response without the id of its request. */
const visible = ({ status, bytes, headers }: Answer): object => ({
  status,
  bytes,
  headers: Object.fromEntries(
    Object.entries(headers).filter(([name]) => !['x-request-id', 'traceparent', 'date'].includes(name)),
  ),
});

describe('a parameter that a route does not know', () => {
  it.each([
    ['POST', '/api/v1/users', { display_name: 'Eve' }],
    ['POST', '/api/v1/keys', { name: 'k', scopes: ['read'] }],
    ['POST', '/api/v1/organizations', { name: 'Third' }],
    ['PATCH', '/api/v1/organizations/self', { name: 'Third' }],
  ] as const)('is refused where rights are handed out: %s %s', async (method, url, body) => {
    const before = (await root('GET', '/api/v1/keys')).json.meta;
    const at = url.replace('self', api.organizationId);
    const refused = await root(method, `${at}?organization_id=${foreign.organizationId}`, body);
    expect(refused.status).toBe(422);
    expect(refused.json.detail).toEqual([
      {
        type: 'extra_forbidden',
        loc: ['query', 'organization_id'],
        msg: 'Extra inputs are not permitted',
        input: foreign.organizationId,
      },
    ]);
    expect((await root('GET', '/api/v1/keys')).json.meta).toEqual(before);
  });

  it('is refused in lists of rights, which it might limit, and ignored elsewhere', async () => {
    expect((await root('GET', `/api/v1/keys?organisation_id=${foreign.organizationId}`)).status).toBe(422);
    expect((await root('GET', '/api/v1/channels?organisation_id=x')).status).toBe(200);
  });
});

describe("another organization's resources", () => {
  it('are answered byte for byte like missing ones, for every request', async () => {
    const key = await keyWith('read', 'write', 'admin');
    const missing = '0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f';
    const ifMatch = { 'if-match': '"0"' };
    const calls: { method: Call['method']; path: (id: string) => string; id: string; body?: object }[] = [
      { method: 'GET', path: (id) => `/api/v1/organizations/${id}`, id: foreign.organizationId },
      { method: 'PATCH', path: (id) => `/api/v1/organizations/${id}`, id: foreign.organizationId, body: { name: 'x' } },
      { method: 'GET', path: (id) => `/api/v1/users/${id}`, id: foreign.userId },
      { method: 'PATCH', path: (id) => `/api/v1/users/${id}`, id: foreign.userId, body: { display_name: 'x' } },
      { method: 'DELETE', path: (id) => `/api/v1/users/${id}`, id: foreign.userId },
      { method: 'GET', path: (id) => `/api/v1/keys/${id}`, id: foreign.keyId },
      { method: 'POST', path: (id) => `/api/v1/keys/${id}/rotate`, id: foreign.keyId, body: {} },
      { method: 'POST', path: (id) => `/api/v1/keys/${id}/revoke`, id: foreign.keyId },
      { method: 'GET', path: (id) => `/api/v1/users?organization_id=${id}`, id: foreign.organizationId },
      { method: 'GET', path: (id) => `/api/v1/keys?organization_id=${id}`, id: foreign.organizationId },
    ];
    for (const { method, path, id, body } of calls) {
      for (const headers of [{}, ifMatch]) {
        const call = { method, key, headers, ...(body !== undefined && { body }) };
        const [theirs, nobodys] = [
          await api.call({ ...call, url: path(id) }),
          await api.call({ ...call, url: path(missing) }),
        ];
        expect(theirs.status).toBe(404);
        expect(visible(theirs)).toEqual(visible(nobodys));
      }
    }
    const still = await api.call({ method: 'GET', url: `/api/v1/users/${foreign.userId}`, key: foreign.key });
    expect(still.json).toMatchObject({ display_name: 'Eve', is_active: true });
  });

  it('are accessible with the scope platform and an explicit organization_id', async () => {
    const { organizationId, userId, keyId } = foreign;
    const at = `?organization_id=${organizationId}`;
    expect((await root('GET', `/api/v1/organizations/${organizationId}`)).json.name).toBe('Other');
    expect((await root('GET', `/api/v1/users/${userId}${at}`)).json.display_name).toBe('Eve');
    expect((await root('GET', `/api/v1/keys${at}`)).json.items.map((one: { id: string }) => one.id)).toEqual([keyId]);
    expect((await root('GET', `/api/v1/users/${userId}`)).status).toBe(404);
    const listed = await root('GET', '/api/v1/organizations');
    expect(listed.json.items.map((one: { name: string }) => one.name)).toEqual(['Other', 'Default organization']);
    const changed = await root('PATCH', `/api/v1/organizations/${organizationId}`, { owner_id: userId });
    expect(changed.json.owner).toMatchObject({ display_name: 'Eve' });
    expect(changed.json.owner.image_url).toMatch(/^data:image\/svg\+xml,/);
    const stranger = await root('PATCH', `/api/v1/organizations/${organizationId}`, { owner_id: api.userId });
    expect(stranger.status).toBe(422);
  });
});

describe('scopes', () => {
  it('are required by their routes', async () => {
    const calls: [string, Call['method'], string, object?][] = [
      ['read', 'GET', '/api/v1/users'],
      ['read', 'GET', `/api/v1/organizations/${api.organizationId}`],
      ['admin', 'POST', '/api/v1/users', {}],
      ['admin', 'GET', '/api/v1/keys'],
      ['admin', 'PATCH', `/api/v1/organizations/${api.organizationId}`, {}],
      ['platform', 'GET', '/api/v1/organizations'],
      ['platform', 'POST', '/api/v1/organizations', { name: 'x' }],
    ];
    const all = ['read', 'write', 'admin', 'platform'];
    for (const [scope, method, url, body] of calls) {
      const call = { method, url, ...(body !== undefined && { body }) };
      const without = await api.call({ ...call, key: await keyWith(...all.filter((one) => one !== scope)) });
      expect(without).toMatchObject({ status: 403, json: { code: 'missing_scope' } });
      expect((await api.call({ ...call, key: await keyWith(scope) })).status).toBe(200);
    }
  });

  it('are granted, to new keys or by rotation, only by keys that have them', async () => {
    const admin = await keyWith('read', 'admin');
    const grant = (scopes: string[]): Promise<Answer> =>
      api.call({
        method: 'POST',
        url: '/api/v1/keys',
        key: admin,
        body: { name: 'x', scopes, access: 'organization' },
      });
    expect((await grant(['read'])).status).toBe(200);
    expect((await grant(['read', 'platform'])).status).toBe(403);

    const powerful = await root('POST', '/api/v1/keys', { name: 'x', scopes: ['platform'], access: 'organization' });
    const rotate = { method: 'POST' as const, url: `/api/v1/keys/${powerful.json.id}/rotate` };
    expect((await api.call({ ...rotate, key: admin })).status).toBe(403);
    const untouched = await root('GET', `/api/v1/keys/${powerful.json.id}`);
    expect(untouched.json.rotated_to).toBeNull();
  });
});

describe('the secret of a new key', () => {
  it('is returned once: a repeated request returns the same key without it, and no store contains it', async () => {
    const call = {
      method: 'POST' as const,
      url: '/api/v1/keys',
      key: api.rootKey,
      body: { name: 'once', scopes: ['read'] },
      headers: { 'idempotency-key': 'create-once' },
    };
    const first = await api.call(call);
    const replay = await api.call(call);
    expect(replay.status).toBe(200);
    expect(replay.headers['idempotency-replayed']).toBe('true');
    expect(replay.json).toEqual({ ...first.json, key: null });
    expect(replay.headers['etag']).toBe(first.headers['etag']);

    const { redis, store } = api.stores.platform;
    const held: string[] = [];
    for (const key of await keysIn(redis, '*'))
      held.push(key, (await nodeWith(redis, key).dumpBuffer(key))?.toString('latin1') ?? '');
    for await (const event of store.readStream(`key-${first.json.id}`)) held.push(JSON.stringify(event.data));
    const all = held.join('\n');
    // Proves the search: it finds the name of the key.
    expect(all).toContain('once');
    expect(all).not.toContain(first.json.key);
    expect(all).not.toContain(String(first.json.key).slice(12, 40));
  });

  it('is in no other response', async () => {
    const made = await root('POST', '/api/v1/keys', { name: 'listed', scopes: ['read'] });
    const one = await root('GET', `/api/v1/keys/${made.json.id}`);
    const list = await root('GET', '/api/v1/keys?is_revoked=false&size=100');
    expect(list.json.items.map((key: { id: string }) => key.id)).toContain(made.json.id);
    for (const answer of [one, list]) expect(answer.bytes).not.toContain(made.json.key);
    expect(one.json.last_four).toBe(made.json.key.slice(-4));
  });
});

describe('conditions and positions', () => {
  it('work as for all commands', async () => {
    const user = await root('POST', '/api/v1/users', { display_name: 'Grace' });
    const url = `/api/v1/users/${user.json.id}`;
    const patch = (ifMatch: string): Promise<Answer> =>
      api.call({
        method: 'PATCH',
        url,
        key: api.rootKey,
        body: { display_name: 'Hopper' },
        headers: { 'if-match': ifMatch },
      });
    expect((await patch('"7"')).status).toBe(412);
    const changed = await patch(String(user.headers['etag']));
    expect(changed.status).toBe(200);
    expect(changed.json.display_name).toBe('Hopper');
    const position = String(changed.headers['parley-position']);
    const seen = await api.call({ method: 'GET', url, key: api.rootKey, headers: { 'parley-position': position } });
    expect(seen.json.display_name).toBe('Hopper');
    expect(seen.headers['etag']).toBe(changed.headers['etag']);
  });
});
