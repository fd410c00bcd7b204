import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { KeyAuthenticator, KeyDirectory, Keys } from '#libs/features/keys/index.ts';
import { Announcements } from '#libs/platform/announcements/index.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import { composeReadModels } from '#services/features.ts';
import { eventually } from '#test/support/eventually.ts';
import { readLog } from '#test/support/log-reader.ts';
import { composeUnapplied } from '#test/support/unapplied-writer.ts';
import { type Answer, startTestApi, type TestApi, type TestInstance } from '#test/support/test-api.ts';

let api: TestApi;
let other: TestInstance;

beforeAll(async () => {
  api = await startTestApi();
  other = await api.startInstance();
});
afterAll(async () => {
  await other.stop();
  await api.stop();
});

async function createKey(body: object = {}): Promise<{ id: string; key: string }> {
  const answer = await api.call({
    method: 'POST',
    url: '/api/v1/keys',
    key: api.rootKey,
    body: { name: 'test', scopes: ['read', 'write', 'admin'], access: 'organization', ...body },
  });
  expect(answer.status).toBe(200);
  return answer.json;
}

const operatorContext = (): CommandContext => ({
  commandId: newId(),
  organizationId: api.organizationId,
  actor: { type: 'system', id: 'test' },
  at: new Date().toISOString(),
});
const read = (instance: TestInstance, key: string | undefined): Promise<Answer> =>
  instance.call({ method: 'GET', url: '/api/v1/users', key });
const statusWith = async (instance: TestInstance, key: string): Promise<number> => (await read(instance, key)).status;
const post = (url: string, body?: object): Promise<Answer> =>
  api.call({ method: 'POST', url, key: api.rootKey, ...(body !== undefined && { body }) });

describe('a key', () => {
  it('is accepted bare, as Bearer and as Token', async () => {
    const { key } = await createKey();
    for (const header of [key, `Bearer ${key}`, `Token ${key}`, `bearer ${key}`, `token  ${key}`]) {
      expect(await statusWith(api, header)).toBe(200);
    }
  });

  it('is refused with the same answer if it is missing, malformed or unknown', async () => {
    const wellFormed = 'parley_live_4r7G8b0y1h9g6NUEKnrG3uubP4cn8R3mFAkjiiRkCmk0y2hqE';
    const { key } = await createKey();
    for (const header of [
      undefined,
      '',
      'Bearer',
      `Basic ${key}`,
      `${key}x`,
      'x'.repeat(40),
      wellFormed,
      `Token ${key} ${key}`,
    ]) {
      const answer = await read(api, header);
      expect(answer.status).toBe(401);
      expect(answer.json.detail).toBe('Not authenticated');
      expect(answer.headers['www-authenticate']).toBeDefined();
    }
  });

  it('stops working when it expires', async () => {
    const expiresAt = new Date(Date.now() + 2_500).toISOString();
    const { key } = await createKey({ expires_at: expiresAt });
    const status = await statusWith(other, key);
    // A machine may be too busy to ask in time.
    expect(Date.now() < Date.parse(expiresAt) ? [200] : [200, 401]).toContain(status);
    await eventually(async () => (await statusWith(other, key)) === 401);
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expiresAt));
    expect(await statusWith(api, key)).toBe(401);
  });

  it('cannot be created with an expiry that has passed', async () => {
    const body = { name: 'x', scopes: ['read'], expires_at: '2020-01-01T00:00:00Z' };
    expect((await post('/api/v1/keys', body)).status).toBe(422);
  });

  it('acts for its principal', async () => {
    const service = await createKey({ principal: { type: 'service', id: 'crawler' } });
    const made = await api.call({ method: 'POST', url: '/api/v1/users', key: service.key, body: {} });
    expect(made.status).toBe(200);
    for await (const event of api.stores.platform.store.readStream(`user-${made.json.id}`)) {
      expect(event.metadata).toMatchObject({ actor: { type: 'service', id: 'crawler' } });
    }
    const refused = await post('/api/v1/keys', {
      name: 'x',
      scopes: ['read'],
      principal: { type: 'user', id: 'nobody' },
    });
    expect(refused.status).toBe(422);
    expect(refused.json.detail[0].loc).toEqual(['body', 'principal', 'id']);
  });
});

describe('a rotated key', () => {
  it('works beside its successor until it is revoked; a third one is refused', async () => {
    const first = await createKey({ scopes: ['read', 'admin'] });
    const second = await post(`/api/v1/keys/${first.id}/rotate`);
    expect(second.json).toMatchObject({ name: 'test', scopes: ['read', 'admin'], rotated_from: first.id });
    expect(await statusWith(api, first.key)).toBe(200);
    expect(await statusWith(other, second.json.key)).toBe(200);

    expect(await post(`/api/v1/keys/${first.id}/rotate`)).toMatchObject({ status: 409, json: { code: 'key_rotated' } });
    const third = await post(`/api/v1/keys/${second.json.id}/rotate`);
    expect(third).toMatchObject({ status: 409, json: { code: 'two_keys_active' } });

    expect((await post(`/api/v1/keys/${first.id}/revoke`)).json.revoked_at).not.toBeNull();
    expect((await post(`/api/v1/keys/${second.json.id}/rotate`)).status).toBe(200);
  });

  it('ends with its grace period, even where it was cached', async () => {
    const old = await createKey();
    expect(await statusWith(other, old.key)).toBe(200);
    const next = await post(`/api/v1/keys/${old.id}/rotate`, { grace_seconds: 1 });
    await eventually(async () => (await statusWith(other, old.key)) === 401);
    expect(await statusWith(other, next.json.key)).toBe(200);
  });

  it('can be rotated again if its successor was announced and not issued', async () => {
    const old = await createKey();
    const { platform } = api.stores;
    const announcements = { announce: async () => undefined };
    // The process dies between the two appends of a rotation.
    const store: EventStore = {
      append: (stream, ...rest) =>
        stream === `key-${old.id}` ? platform.store.append(stream, ...rest) : Promise.reject(new Error('killed')),
      readStream: (...args) => platform.store.readStream(...args),
      ping: () => platform.store.ping(),
      close: () => platform.store.close(),
    };
    const dying = new Keys({ ...platform, ...composeReadModels(platform), store, announcements });
    await expect(dying.rotate(operatorContext(), old.id, { grantor: 'operator' })).rejects.toThrow('killed');

    // A caller that may not rotate the key does not withdraw the announced successor.
    const { key: weaker } = await createKey({ scopes: ['admin'] });
    const url = `/api/v1/keys/${old.id}/rotate`;
    expect((await api.call({ method: 'POST', url, key: weaker })).status).toBe(403);
    const { rotated_to: announced } = (
      await api.call({ method: 'GET', url: `/api/v1/keys/${old.id}`, key: api.rootKey })
    ).json;
    expect(await readLog(api.stores.eventStore.url, `key-${announced}`)).toEqual([]);

    const again = await post(url);
    expect(again.status).toBe(200);
    expect(await statusWith(api, again.json.key)).toBe(200);
    expect(await statusWith(api, old.key)).toBe(200);
  });
});

describe('a revoked key', () => {
  it('is refused immediately here, and soon by other processes that cached it', async () => {
    const { id, key } = await createKey();
    expect(await statusWith(api, key)).toBe(200);
    expect(await statusWith(other, key)).toBe(200);
    await post(`/api/v1/keys/${id}/revoke`);
    expect(await statusWith(api, key)).toBe(401);
    await eventually(async () => (await statusWith(other, key)) === 401);
  });

  it('ends the event streams that it has opened, also those of other processes', async () => {
    const { id, key } = await createKey();
    const agent = (await post('/api/v1/agents', { name: 'Followed' })).json.id;
    const url = `${await other.listen()}/api/v1/agents/${agent}/events`;
    const response = await fetch(url, { headers: { authorization: key } });
    expect(response.status).toBe(200);
    await post(`/api/v1/keys/${id}/revoke`);
    expect(await response.text()).toMatch(
      /^(:\n\n)+event: close\ndata: {"code":4503,"reason":"The key has ended"}\n\n$/,
    );
  });

  it('is refused after a lost connection, without an announcement of the revocation', async () => {
    const { key, id } = await createKey();
    expect(await statusWith(other, key)).toBe(200);
    const { platform } = api.stores;
    const silent = { announce: async () => undefined };
    const commands = new Keys({ ...platform, ...composeReadModels(platform), announcements: silent });
    await commands.revoke(operatorContext(), id, 'operator');
    for (const node of api.stores.platform.redis.nodes()) await node.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await eventually(async () => (await statusWith(other, key)) === 401);
  });

  it('is refused by a process that starts before read models have the revocation', async () => {
    const { key, id } = await createKey();
    const user = (await post('/api/v1/users', { display_name: 'Ada' })).json.id;
    const ofUser = await createKey({ principal: { type: 'user', id: user } });
    // Applied before, so that both keys work by the read models.
    expect((await api.call({ method: 'GET', url: `/api/v1/keys/${ofUser.id}`, key: api.rootKey })).status).toBe(200);
    const release = await api.stopProjector();
    const { keys, users } = composeUnapplied(api.stores.platform);
    await keys.revoke(operatorContext(), id, 'operator');
    await users.deactivate(operatorContext(), user);
    const started = await api.startInstance();
    try {
      expect(await statusWith(started, key)).toBe(401);
      expect(await statusWith(started, ofUser.key)).toBe(401);
    } finally {
      await started.stop();
      await release();
    }
  });

  it('is refused like a key of a deactivated user', async () => {
    const user = await post('/api/v1/users', { display_name: 'Ada' });
    const { key } = await createKey({ principal: { type: 'user', id: user.json.id } });
    expect(await statusWith(api, key)).toBe(200);
    expect(await statusWith(other, key)).toBe(200);
    const gone = await api.call({ method: 'DELETE', url: `/api/v1/users/${user.json.id}`, key: api.rootKey });
    expect(gone.json).toMatchObject({ is_active: false });
    expect(await statusWith(api, key)).toBe(401);
    await eventually(async () => (await statusWith(other, key)) === 401);
  });
});

/* What a process has read grows no older here: it reads a key again for an announcement, or for a lost connection, alone. */
describe('a process whose time stands still', () => {
  let announcements: Announcements;
  let authenticator: KeyAuthenticator;
  let stop: () => void;

  beforeAll(async () => {
    const { platform } = api.stores;
    announcements = new Announcements(platform);
    let ticks = 0;
    const clock = (): number => (ticks += 1e-6);
    authenticator = new KeyAuthenticator({ directory: new KeyDirectory(platform), announcements, clock });
    stop = announcements.receive();
    await eventually(() => announcements.areReceivedSince(performance.now(), 60_000));
  });
  afterAll(() => stop());

  async function keyInMemory(body?: object): Promise<{ id: string; key: string }> {
    const created = await createKey(body);
    await eventually(async () => (await authenticator.authenticate(created.key)) !== null);
    expect(authenticator.authenticate(created.key)).toMatchObject({ keyId: created.id, expiresAtMs: null });
    return created;
  }
  const isRefused = async (key: string): Promise<boolean> => (await authenticator.authenticate(key)) === null;

  it('refuses a key that another process has revoked', async () => {
    const { id, key } = await keyInMemory();
    await post(`/api/v1/keys/${id}/revoke`);
    await eventually(async () => expect(await isRefused(key)).toBe(true));
  });

  it('refuses a key whose user another process has deactivated', async () => {
    const user = (await post('/api/v1/users', { display_name: 'Ada' })).json.id;
    const { key } = await keyInMemory({ principal: { type: 'user', id: user } });
    await api.call({ method: 'DELETE', url: `/api/v1/users/${user}`, key: api.rootKey });
    await eventually(async () => expect(await isRefused(key)).toBe(true));
  });

  it('refuses a key at the end of the grace period of its rotation', async () => {
    const { id, key } = await keyInMemory();
    await post(`/api/v1/keys/${id}/rotate`, { grace_seconds: 1 });
    await eventually(async () => expect(await isRefused(key)).toBe(true));
  });

  it('reads a key again after a lost connection', async () => {
    const { id, key } = await keyInMemory();
    const { platform } = api.stores;
    const silent = { announce: async () => undefined };
    const commands = new Keys({ ...platform, ...composeReadModels(platform), announcements: silent });
    await commands.revoke(operatorContext(), id, 'operator');
    expect(await isRefused(key)).toBe(false);
    for (const node of platform.redis.nodes()) await node.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await eventually(async () => expect(await isRefused(key)).toBe(true));
  });
});
