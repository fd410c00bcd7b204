/* Requests that name entities which are in the log but not yet in the read models, which are marked complete. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { parseConfig } from '#libs/platform/config/index.ts';
import { bootstrap } from '#services/first-organization.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { roleContext } from '#test/support/role-context.ts';
import { buildGateway, type Gateway } from '#services/gateway/role.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { composeUnapplied } from '#test/support/unapplied-writer.ts';

let test: TestPlatform;
let gateway: Gateway;
/** Writes to the log only. No projector runs, so its entities stay missing from the read models. */
let elsewhere: Features;
let organizationId: string;
let key: string;
let dataDir: string;

beforeAll(async () => {
  test = await startTestPlatform();
  dataDir = await mkdtemp(join(tmpdir(), 'parley-test-lag-'));
  const { platform } = test;
  const { organizations, users, keys, state } = composeFeatures(platform);
  const first = await bootstrap({
    store: platform.store,
    organizations,
    users,
    keys,
    dataDir,
  });
  ({ organizationId } = first);
  key = first.apiKey ?? '';
  const start = await state.begin();
  await state.save(start, null, true);
  elsewhere = composeUnapplied(platform);
  gateway = await buildGateway(
    roleContext(platform),
    parseConfig({ RATE_LIMIT_PER_ADDRESS: '0', RATE_LIMIT_PER_KEY: '0' }),
  );
});
afterAll(async () => {
  await gateway.stop();
  await test.stop();
  await rm(dataDir, { recursive: true, force: true });
});

async function send(method: 'POST' | 'PATCH', url: string, body: object, idempotencyKey: string) {
  const headers = { authorization: key, 'idempotency-key': idempotencyKey };
  const {
    statusCode: status,
    headers: sent,
    payload,
  } = await gateway.server.app.inject({
    method,
    url,
    headers,
    payload: body,
  });
  return { status, isReplay: sent['idempotency-replayed'] === 'true', json: JSON.parse(payload) };
}

const newUser = (id: string) => {
  const context = serviceCommand(organizationId, { commandId: id });
  const data = { id, displayName: 'Ada', email: null, imageUrl: null };
  return elsewhere.users.create(context, id, { type: 'UserCreated.v1', data });
};
const newChannel = (id: string) =>
  elsewhere.channels.create(serviceCommand(organizationId, { commandId: id }), { id, ...PLAIN_CHANNEL });
const newOrganization = (id: string) => {
  const data = { id, name: 'Other', application: null, ownerUserId: null };
  const created = { type: 'OrganizationCreated.v1', data } as const;
  return elsewhere.organizations.create(serviceCommand(id, { commandId: id }), id, created);
};

/** A channel that is in the read models. */
const channel = async (): Promise<string> =>
  (await send('POST', '/api/v1/channels', { name: 'here', participants: [] }, newId())).json.id;
const user = (id: string) => ({ type: 'authenticated_user', user_id: id });
const content = [{ type: 'text', text: 'hello' }];

it.each([
  {
    named: 'a user who takes part in a new channel',
    write: newUser,
    request: (id: string) => ({ url: '/api/v1/channels', body: { name: 'a', participants: [user(id)] } }),
  },
  {
    named: 'a new participant',
    write: newUser,
    request: async (id: string) => ({ url: `/api/v1/channels/${await channel()}/participants`, body: user(id) }),
  },
  {
    named: 'the sender of an interaction',
    write: newUser,
    request: async (id: string) => ({
      url: `/api/v1/channels/${await channel()}/interactions`,
      body: { content, participant: user(id) },
    }),
  },
  {
    named: 'the principal of a new key',
    write: newUser,
    request: (id: string) => ({
      url: '/api/v1/keys',
      body: { name: 'key', scopes: ['read'], principal: { type: 'user', id } },
    }),
  },
  {
    named: 'the owner of an organization',
    write: newUser,
    request: (id: string) => ({
      method: 'PATCH' as const,
      url: `/api/v1/organizations/${organizationId}`,
      body: { owner_id: id },
    }),
  },
  {
    named: 'the parent of a thread',
    write: newChannel,
    request: (id: string) => ({
      url: '/api/v1/channels',
      body: { name: 'a', participants: [], parent_channel_id: id },
    }),
  },
  {
    named: 'the organization of a new user',
    write: newOrganization,
    request: (id: string) => ({ url: '/api/v1/users', body: { display_name: 'Eve', organization_id: id } }),
  },
])('$named is looked up in the log, and the reply that it was missing is not stored', async ({ write, request }) => {
  const id = newId();
  const { url, body, method = 'POST' as const } = { method: undefined, ...(await request(id)) };
  const idempotencyKey = newId();
  const before = await send(method, url, body, idempotencyKey);
  expect([404, 422]).toContain(before.status);
  expect(await write(id)).toMatchObject({ ok: true });
  expect(await send(method, url, body, idempotencyKey)).toMatchObject({ status: 200, isReplay: false });
  expect(await send(method, url, body, idempotencyKey)).toMatchObject({ status: 200, isReplay: true });
});

it('a rejection that was decided on the log is stored', async () => {
  const url = `/api/v1/channels/${newId()}/interactions`;
  const idempotencyKey = newId();
  expect(await send('POST', url, { content }, idempotencyKey)).toMatchObject({ status: 404, isReplay: false });
  expect(await send('POST', url, { content }, idempotencyKey)).toMatchObject({ status: 404, isReplay: true });
});
