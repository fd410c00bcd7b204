import { describe, expect, it } from 'vitest';

import { exportJWK, exportPKCS8, exportSPKI, generateKeyPair } from 'jose';

import { describeStoredEvents } from '#test/support/event-samples.ts';
import { stateAfter } from '#test/support/log-events.ts';

import { publicKeyOf } from './public-keys.ts';
import { decideUpdate, tokenIssuerCodec, type TokenIssuerEvent, tokenIssuerFold } from './token-issuer.ts';
import samples from './token-issuer.events.samples.json' with { type: 'json' };

describeStoredEvents('token issuers', tokenIssuerCodec, samples);

const created = {
  type: 'TokenIssuerCreated.v1',
  data: {
    id: 'issuer-1',
    name: '',
    issuer: 'https://shop.example.org',
    audience: 'parley',
    keys: [],
    jwksUrl: 'https://shop.example.org/jwks.json',
    createsUsers: false,
  },
} satisfies TokenIssuerEvent;

describe('token issuers', () => {
  it('change only in what is given and is new', () => {
    const issuer = stateAfter(tokenIssuerFold, [created]);
    if (issuer === null) throw new Error('these events create nothing');
    expect(decideUpdate(issuer, { name: '', createsUsers: undefined, keys: [] })).toEqual({ ok: true, events: [] });
    expect(decideUpdate(issuer, { name: 'Shop', createsUsers: true })).toEqual({
      ok: true,
      events: [{ type: 'TokenIssuerUpdated.v1', data: { name: 'Shop', createsUsers: true } }],
    });
  });
});

describe('a public key', () => {
  it.each(['EdDSA', 'ES256', 'RS256'])(
    'of %s is taken as JWK and as PEM, and is stored as the same key',
    async (alg) => {
      const { publicKey } = await generateKeyPair(alg, { extractable: true });
      const jwk = await exportJWK(publicKey);
      const key = await publicKeyOf({ ...jwk, kid: 'one', use: 'sig', x5c: ['ignored'] });
      expect(key).toEqual({ ...jwk, alg, kid: 'one' });
      expect(await publicKeyOf(await exportSPKI(publicKey))).toEqual({ ...jwk, alg });
    },
  );

  it('is refused if it is private, symmetric, or of another algorithm', async () => {
    const pair = await generateKeyPair('ES256', { extractable: true });
    const p384 = await exportJWK((await generateKeyPair('ES384', { extractable: true })).publicKey);
    const { publicKey: small } = await crypto.subtle.generateKey(
      { name: 'RSASSA-PKCS1-v1_5', modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' },
      true,
      ['sign', 'verify'],
    );
    const jwk = await exportJWK(pair.publicKey);
    for (const [given, why] of [
      [await exportJWK(pair.privateKey), 'private'],
      [await exportPKCS8(pair.privateKey), 'private'],
      [{ kty: 'oct', k: 'c2VjcmV0' }, 'symmetric'],
      [{ ...jwk, k: 'c2VjcmV0' }, 'private'],
      [{ ...jwk, alg: 'HS256' }, 'HS256'],
      [{ ...jwk, use: 'enc' }, 'not for signatures'],
      [p384, 'must be one of'],
      [await exportJWK(small), '2048'],
      [{ ...jwk, x: 'AA' }, 'cannot be read'],
      ['-----BEGIN CERTIFICATE-----', 'PEM'],
      [null, 'JWK or a PEM'],
    ] as const) {
      await expect(publicKeyOf(given)).rejects.toThrow(why);
    }
  });
});
