import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { register, Signer } from '#test/support/member-tokens.ts';
import { type Answer, startTestApi, type TestApi } from '#test/support/test-api.ts';
import { startWebsite, type Website } from '#test/support/website.ts';

let api: TestApi;
let site: Website;

beforeAll(async () => {
  site = await startWebsite();
  api = await startTestApi({ fetch: { allowHosts: [{ host: '127.0.0.1', port: site.port }] } });
});

afterAll(async () => {
  await api?.stop();
  await site?.stop();
});

const root = (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', url: string, body?: object, key = api.rootKey) =>
  api.call({ method, url, key, ...(body && { body }) });
/** A route that every caller may ask, and that shows nothing of others. */
const ask = (token: string) => api.call({ method: 'GET', url: '/api/v1/channels?size=1', key: `Bearer ${token}` });
const refused = { status: 401, json: { detail: 'Not authenticated' } };
const admitted = async (answer: Promise<Answer>) => (await answer).status !== 401;
let count = 0;
const newIssuer = () => `https://shop-${++count}.example.org`;

describe('a token', () => {
  it.each(['EdDSA', 'ES256', 'RS256'])('that a registered key of %s has signed is accepted', async (alg) => {
    const signer = await Signer.create(alg, newIssuer());
    await register(api, signer);
    expect(await admitted(ask(await signer.token('ada')))).toBe(true);
    // Within the minute that clocks may differ by, and with one of several audiences.
    const now = Math.floor(Date.now() / 1_000);
    expect(await admitted(ask(await signer.token('ada', { exp: now - 30, iat: now + 30 })))).toBe(true);
    expect(await admitted(ask(await signer.token('ada', { aud: ['other', signer.audience] })))).toBe(true);
  });

  it.each(['EdDSA', 'ES256', 'RS256'])('that is forged from one of %s is refused without a reason', async (alg) => {
    const signer = await Signer.create(alg, newIssuer(), 'one');
    await register(api, signer);
    for (const [what, token] of Object.entries(await signer.forgeries('ada'))) {
      const answer = await ask(token);
      expect({ what, status: answer.status, bytes: answer.bytes }).toEqual({
        what,
        status: 401,
        bytes: expect.stringContaining('Not authenticated'),
      });
    }
    expect(await admitted(ask(await signer.token('ada')))).toBe(true);
  });

  it('opens nothing but what its route declares for members', async () => {
    const signer = await Signer.create('EdDSA', newIssuer());
    await register(api, signer);
    const key = await signer.token('ada');
    for (const url of ['/api/v1/users', '/api/v1/agents', '/api/v1/crawls', '/api/v1/reports', '/api/v1/knowledge']) {
      expect(await api.call({ method: 'GET', url, key })).toMatchObject({
        status: 403,
        json: { code: 'not_for_members' },
      });
    }
    for (const url of ['/api/v1/keys', '/api/v1/token-issuers', '/api/v1/organizations']) {
      expect(await api.call({ method: 'GET', url, key })).toMatchObject({ status: 403 });
    }
  });

  it('ends with its user, its key and its issuer', async () => {
    const [first, second] = [await Signer.create('EdDSA', newIssuer(), '1'), await Signer.create('EdDSA', 'x', '2')];
    const id = await register(api, first, { keys: [first.jwk, second.jwk] });
    const [ada, bob] = [await first.token('ada', { name: 'Ada who leaves' }), await first.token('bob')];
    expect([await admitted(ask(ada)), await admitted(ask(bob))]).toEqual([true, true]);
    const users: { id: string; display_name: string }[] = (await root('GET', '/api/v1/users')).json.items;
    await root('DELETE', `/api/v1/users/${users.find((user) => user.display_name === 'Ada who leaves')?.id}`);
    expect(await ask(ada)).toMatchObject(refused);
    expect(await ask(await first.token('ada'))).toMatchObject(refused);
    expect(await admitted(ask(bob))).toBe(true);
    await root('PATCH', `/api/v1/token-issuers/${id}`, { keys: [second.jwk] });
    expect(await ask(bob)).toMatchObject(refused);
    await root('PATCH', `/api/v1/token-issuers/${id}`, { keys: [first.jwk] });
    expect(await admitted(ask(bob))).toBe(true);
    await root('DELETE', `/api/v1/token-issuers/${id}`);
    expect(await ask(bob)).toMatchObject(refused);
    expect(await ask(await first.token('bob'))).toMatchObject(refused);
  });

  it('creates its user at first sight if the issuer may do so, with the profile that it states', async () => {
    const signer = await Signer.create('EdDSA', newIssuer());
    const id = await register(api, signer, { creates_users: false });
    const profile = { name: 'Grace', email: 'grace@example.org', picture: 'https://example.org/grace.png' };
    expect(await ask(await signer.token('grace', profile))).toMatchObject(refused);
    await root('PATCH', `/api/v1/token-issuers/${id}`, { creates_users: true });
    await Promise.all([1, 2, 3].map(async () => ask(await signer.token('grace', profile))));
    const users = (await root('GET', '/api/v1/users')).json.items;
    expect(users.filter((user: { display_name: string }) => user.display_name === 'Grace')).toEqual([
      expect.objectContaining({ email: 'grace@example.org', image_url: 'https://example.org/grace.png' }),
    ]);
  });

  it('is of the user that the backend has created for its subject', async () => {
    const signer = await Signer.create('EdDSA', newIssuer());
    await register(api, signer, { creates_users: false });
    const body = { external_id: 'linus', issuer: signer.issuer, display_name: 'Linus' };
    const created = await root('POST', '/api/v1/users', body);
    expect(created.json).toMatchObject({ external_id: 'linus', issuer: signer.issuer, display_name: 'Linus' });
    expect((await root('POST', '/api/v1/users', { ...body, display_name: 'x' })).json).toEqual(created.json);
    expect((await root('GET', '/api/v1/users?external_id=linus')).json.items).toEqual([created.json]);
    expect(await root('POST', '/api/v1/users', { external_id: 'linus' })).toMatchObject({ status: 422 });
    const participants = [{ type: 'authenticated_user', user_id: created.json.id }];
    const channel = await root('POST', '/api/v1/channels', { name: 'for Linus', participants });
    const list = await ask(await signer.token('linus'));
    expect(list.json.items).toEqual([expect.objectContaining({ id: channel.json.id })]);
  });

  it('of another organization that registered the same issuer is one of that organization', async () => {
    const issuer = newIssuer();
    const [own, foreign] = [await Signer.create('EdDSA', issuer, 'k'), await Signer.create('EdDSA', issuer, 'k')];
    await register(api, own);
    const other = await root('POST', '/api/v1/organizations', { name: 'Other' });
    const admin = await root('POST', '/api/v1/keys', {
      name: 'admin',
      scopes: ['read', 'admin'],
      principal: { type: 'service', id: 'other' },
      organization_id: other.json.id,
    });
    await register(api, foreign, {}, admin.json.key);
    expect(await admitted(ask(await own.token('ada', { name: 'Own Ada' })))).toBe(true);
    expect(await admitted(ask(await foreign.token('ada', { name: 'Foreign Ada' })))).toBe(true);
    const names = (answer: Answer) => answer.json.items.map((user: { display_name: string }) => user.display_name);
    expect(names(await root('GET', '/api/v1/users', undefined, admin.json.key))).toEqual(['Foreign Ada']);
    expect(names(await root('GET', '/api/v1/users'))).not.toContain('Foreign Ada');
  });
});

describe('keys that an address publishes', () => {
  it('are fetched once for all tokens, and not again for each unknown kid', async () => {
    const signer = await Signer.create('ES256', newIssuer(), 'now');
    site.pages.set('/stampede', JSON.stringify({ keys: [{ kty: 'oct', k: 'c2VjcmV0' }, 'odd', signer.jwk] }));
    await register(api, signer, { keys: null, jwks_url: `${site.origin}/stampede` });
    const requests = () => site.requests.filter((path) => path === '/stampede').length;
    const answers = await Promise.all(['a', 'b', 'c', 'd'].map(async (sub) => ask(await signer.token(sub))));
    expect(answers.map(({ status }) => status)).not.toContain(401);
    expect(requests()).toBe(1);
    const forged = await Signer.create('ES256', signer.issuer);
    for (let kid = 0; kid < 20; kid++) {
      expect(await ask(await forged.token('a', {}, { kid: `unknown-${kid}` }))).toMatchObject(refused);
    }
    expect(requests()).toBe(1);
  });

  it('that are an empty set are not fetched for each token', async () => {
    const signer = await Signer.create('EdDSA', newIssuer(), 'now');
    site.pages.set('/empty', JSON.stringify({ keys: [] }));
    await register(api, signer, { keys: null, jwks_url: `${site.origin}/empty` });
    for (let time = 0; time < 5; time++) expect(await ask(await signer.token('a'))).toMatchObject(refused);
    expect(site.requests.filter((path) => path === '/empty')).toHaveLength(1);
  });

  it('that cannot be fetched admit nobody, and the answer is to try again', async () => {
    const signer = await Signer.create('EdDSA', newIssuer(), 'now');
    site.pages.set('/inside', { status: 302, headers: { location: 'http://169.254.169.254/latest/meta-data' } });
    site.pages.set('/large', JSON.stringify({ keys: [signer.jwk], padding: 'x'.repeat(300_000) }));
    site.pages.set('/page', '<!doctype html>');
    for (const path of ['/absent', '/inside', '/large', '/page']) {
      const id = await register(api, signer, { keys: null, jwks_url: `${site.origin}${path}` });
      const answer = await ask(await signer.token('a'));
      expect({ path, status: answer.status }).toEqual({ path, status: 503 });
      expect(answer.bytes).not.toContain('169.254');
      await root('DELETE', `/api/v1/token-issuers/${id}`);
    }
  });
});
