import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { grantOf } from '#libs/features/realtime/index.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { CountingStore } from '#test/support/counting-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';
import type { TestRedis } from '#test/support/redis.ts';
import { keysIn } from '#test/support/redis-commands.ts';
import type { AccessChange, Grant } from '#libs/platform/live/index.ts';

let api: TestApi<TestRedis>;
/** Features of another process than the one that answers requests, on the same stores. */
let features: Features;
let authenticate: (key: string) => Promise<Grant>;
let channelId: string;
const changes: AccessChange[] = [];
const stops: (() => void)[] = [];

beforeAll(async () => {
  api = await startTestApi({ redis: 'own' });
  features = composeFeatures(api.stores.platform);
  const { authenticator, stop } = features.startAuthenticator();
  stops.push(
    stop,
    features.realtime.access.onChange((change) => void changes.push(change)),
  );
  channelId = (await call('POST', '/api/v1/channels', { name: 'A channel' })).json.id;
  authenticate = async (key) => {
    const principal = await authenticator.authenticate(key);
    if (principal === null) throw new Error('the key does not work');
    return grantOf(principal, channelId, features.channels);
  };
});
afterAll(async () => {
  for (const stop of stops) stop();
  await api.stop();
});

function call(method: Call['method'], url: string, body?: object): Promise<Answer> {
  return api.call({ method, url, key: api.rootKey, ...(body && { body }) });
}

interface Member {
  readonly userId: string;
  readonly keyId: string;
  readonly participantId: string;
  readonly grant: Grant;
}

async function newMember(): Promise<Member> {
  const userId = (await call('POST', '/api/v1/users', { display_name: 'Ada' })).json.id;
  const body = { type: 'authenticated_user', user_id: userId };
  const added = await call('POST', `/api/v1/channels/${channelId}/participants`, body);
  const participantId = added.json.participants.find((one: { user_id?: string }) => one.user_id === userId).id;
  const key = { name: 'k', scopes: ['read'], access: 'organization', principal: { type: 'user', id: userId } };
  const { id: keyId, key: secret } = (await call('POST', '/api/v1/keys', key)).json;
  return { userId, keyId, participantId, grant: await authenticate(secret) };
}

/** The newest change that concerns a member. */
const changeOf = ({ grant }: Member): Promise<AccessChange> =>
  eventually(() => {
    const change = changes.findLast((one) => one.kind === 'lost' && one.concerns(grant));
    if (change === undefined) throw new Error('no change has arrived');
    return change;
  });
const isAllowed = async (grants: readonly Grant[]): Promise<boolean[]> =>
  (await Promise.all(grants.map((grant) => features.realtime.access.check(grant)))).map(
    (key) => typeof key === 'object',
  );
const takingPart = async (...grants: Grant[]) => {
  const users = await features.realtime.access.usersOf(api.organizationId, channelId);
  return grants.map(({ principalId }) => users?.has(principalId));
};
const check = (...members: Member[]): Promise<boolean[]> => isAllowed(members.map(({ grant }) => grant));

describe('the access of a subscriber', () => {
  it('lasts as long as its key; a removed user no longer takes part', async () => {
    const [stays, revoked, deactivated, removed] = [
      await newMember(),
      await newMember(),
      await newMember(),
      await newMember(),
    ];
    expect(await check(stays, revoked, deactivated, removed)).toEqual([true, true, true, true]);
    await call('POST', `/api/v1/keys/${revoked.keyId}/revoke`);
    await call('DELETE', `/api/v1/users/${deactivated.userId}`);
    await call('DELETE', `/api/v1/channels/${channelId}/participants/${removed.participantId}`);
    expect(await check(removed, stays, deactivated, stays, revoked)).toEqual([true, true, false, true, false]);
    expect(await takingPart(removed.grant, stays.grant)).toEqual([false, true]);

    const [ofKey, ofUser] = [await changeOf(revoked), await changeOf(deactivated)];
    expect([ofKey.concerns(stays.grant), ofUser.concerns(stays.grant)]).toEqual([false, false]);
    const sameNameElsewhere = { ...deactivated.grant, organizationId: 'another' };
    expect(ofUser.concerns(sameNameElsewhere)).toBe(false);
    expect(ofUser.concerns({ ...deactivated.grant, principalType: 'service' })).toBe(false);
  });

  it('is that of a participant for a user who joins later, until the removal', async () => {
    const { userId, participantId, grant } = await newMember();
    const path = `/api/v1/channels/${channelId}/participants`;
    expect(await takingPart(grant)).toEqual([true]);
    await call('DELETE', `${path}/${participantId}`);
    expect(await takingPart(grant)).toEqual([false]);
    expect(await isAllowed([grant])).toEqual([true]);
    await call('POST', path, { type: 'authenticated_user', user_id: userId });
    expect(await takingPart(grant)).toEqual([true]);
  });

  it('is decided on participants that are parsed once per revision of the channel', async () => {
    const usersOf = () => features.channels.usersOf(api.organizationId, channelId);
    const { userId } = await newMember();
    const users = await usersOf();
    expect(users?.has(userId)).toBe(true);
    expect(await usersOf()).toBe(users);
    const joined = await newMember();
    expect((await usersOf())?.has(joined.userId)).toBe(true);
    expect(users?.has(joined.userId)).toBe(false);
  });

  it('lasts for a service until its key expires', async () => {
    const expires = Date.now() + 4_000;
    const body = { name: 'k', scopes: ['read'], principal: { type: 'service', id: 'robot' } };
    const forGood = (await call('POST', '/api/v1/keys', body)).json;
    const short = (await call('POST', '/api/v1/keys', { ...body, expires_at: new Date(expires).toISOString() })).json;
    const grants = [await authenticate(forGood.key), await authenticate(short.key)];
    expect(grants).toMatchObject([
      { principalType: 'service', principalId: 'robot', expiresAtMs: null },
      { keyId: short.id, expiresAtMs: expires },
    ]);
    await eventually(async () => {
      expect(await isAllowed(grants)).toEqual([true, false]);
    });
    expect(Date.now()).toBeGreaterThanOrEqual(expires);
  });

  it('costs one read of the key for hundreds of connections', async () => {
    const member = await newMember();
    const grants = Array.from({ length: 600 }, () => member.grant);
    const { store } = api.stores.platform;
    const counting = new CountingStore(store);
    const { realtime } = composeFeatures({ ...api.stores.platform, store: counting });
    const checked = await Promise.all(grants.map((grant) => realtime.access.check(grant)));
    expect(checked.filter((one) => typeof one === 'object')).toHaveLength(600);
    // The key and its user.
    expect(counting.reads).toBe(2);
  });

  it('is decided on the log if the read model has nothing', async () => {
    const member = await newMember();
    const { redis } = api.stores.platform;
    const keys = await keysIn(redis, `*${member.keyId}*`);
    expect(keys.length).toBeGreaterThan(0);
    await redis.remove(keys);
    expect(await check(member)).toEqual([true]);
  });

  it('is decided while Redis is unavailable, and doubtful when announcements arrive again', async () => {
    const member = await newMember();
    const another = await newMember();
    await api.stores.redis.kill9();
    expect(await check(member)).toEqual([true]);
    await call('POST', `/api/v1/keys/${another.keyId}/revoke`);
    await eventually(async () => expect(await check(another)).toEqual([false]));
    changes.length = 0;
    await api.stores.redis.restart();
    await eventually(() => changes.some(({ kind, concerns }) => kind === 'doubtful' && concerns(member.grant)));
    await eventually(async () => expect(await check(member)).toEqual([true]));
  });
});
