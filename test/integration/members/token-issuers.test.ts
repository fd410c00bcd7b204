import { exportJWK, exportSPKI, generateKeyPair, type JWK } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { startTestApi, type TestApi } from '#test/support/test-api.ts';

const url = '/api/v1/token-issuers';
let api: TestApi;
let jwk: JWK;
let pem: string;

beforeAll(async () => {
  api = await startTestApi();
  const { publicKey } = await generateKeyPair('EdDSA', { extractable: true });
  [jwk, pem] = [await exportJWK(publicKey), await exportSPKI(publicKey)];
});

afterAll(() => api?.stop());

const call = (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object, key = api.rootKey) =>
  api.call({ method, url: path, key, ...(body && { body }) });

describe('token issuers', () => {
  it('are created, read, listed, changed and deleted by administrators', async () => {
    const body = { issuer: 'https://shop.example.org', audience: 'parley', keys: [{ ...jwk, kid: '1' }, pem] };
    const created = await call('POST', url, body);
    expect(created).toMatchObject({ status: 200, json: { name: '', jwks_url: null, creates_users: false } });
    expect(created.json.keys).toEqual([
      { ...jwk, alg: 'EdDSA', kid: '1' },
      { ...jwk, alg: 'EdDSA' },
    ]);
    const one = `${url}/${created.json.id}`;
    expect((await call('GET', one)).json).toEqual(created.json);
    expect((await call('GET', url)).json.items).toEqual([created.json]);
    const changed = await call('PATCH', one, { jwks_url: 'https://shop.example.org/jwks.json', creates_users: true });
    expect(changed.json).toMatchObject({
      keys: [],
      jwks_url: 'https://shop.example.org/jwks.json',
      creates_users: true,
    });
    expect(await call('DELETE', one)).toMatchObject({ status: 204 });
    expect(await call('GET', one)).toMatchObject({ status: 404 });
    expect((await call('GET', url)).json.items).toEqual([]);
    expect(await call('DELETE', one)).toMatchObject({ status: 404 });
  });

  it('take no private, symmetric or unusable key, and no quote of one is in the answer', async () => {
    const { privateKey } = await generateKeyPair('ES256', { extractable: true });
    const secret = await exportJWK(privateKey);
    const named = { issuer: 'https://shop.example.org', audience: 'parley' };
    for (const given of [secret, { kty: 'oct', k: 'c2VjcmV0' }, 'c2VjcmV0', { kty: 'RSA', n: 'AQAB', e: 'AQAB' }]) {
      const refused = await call('POST', url, { ...named, keys: [jwk, given] });
      expect(refused).toMatchObject({ status: 422, json: { detail: [{ loc: ['body', 'keys', 1], input: null }] } });
      expect(refused.bytes).not.toContain(secret.d);
    }
  });

  it('have registered keys or an address of keys, which is public and https', async () => {
    const named = { issuer: 'https://shop.example.org', audience: 'parley' };
    for (const body of [
      named,
      { ...named, keys: [jwk], jwks_url: 'https://shop.example.org/jwks.json' },
      { ...named, keys: [] },
      { ...named, jwks_url: 'http://shop.example.org/jwks.json' },
      { ...named, jwks_url: 'https://169.254.169.254/latest' },
      { ...named, jwks_url: 'https://localhost/jwks.json' },
      { ...named, jwks_url: 'https://shop.example.org/jwks.json#one' },
      { ...named, jwks_url: 'file:///etc/passwd' },
    ]) {
      expect(await call('POST', url, body)).toMatchObject({ status: 422 });
    }
  });

  it('are closed to keys without the scope admin, and to other organizations', async () => {
    const issued = await call('POST', '/api/v1/keys', { name: 'narrow', scopes: ['read', 'write'] });
    const body = { issuer: 'https://shop.example.org', audience: 'parley', keys: [jwk] };
    expect(await call('POST', url, body, issued.json.key)).toMatchObject({ status: 403 });
    expect(await call('GET', url, undefined, issued.json.key)).toMatchObject({ status: 403 });
    const created = await call('POST', url, body);
    const other = await call('POST', '/api/v1/organizations', { name: 'Other' });
    const foreign = await call('POST', '/api/v1/keys', {
      name: 'foreign',
      scopes: ['admin'],
      principal: { type: 'service', id: 'other' },
      organization_id: other.json.id,
    });
    const one = `${url}/${created.json.id}`;
    expect(await call('GET', one, undefined, foreign.json.key)).toMatchObject({ status: 404 });
    expect(await call('PATCH', one, { creates_users: true }, foreign.json.key)).toMatchObject({ status: 404 });
    expect(await call('DELETE', one, undefined, foreign.json.key)).toMatchObject({ status: 404 });
    expect((await call('GET', url, undefined, foreign.json.key)).json.items).toEqual([]);
  });
});
