import { expect, test } from 'vitest';
import { createApiKey, digestOf } from './api-key.ts';
import type { Principal } from './auth.ts';
import { cachingAuthenticator } from './authentication-cache.ts';
import type { KeyDirectory, KnownKey } from './authentication-cache.ts';

const principal: Principal = {
  organizationId: 'o',
  principalType: 'user',
  principalId: 'p',
  keyId: 'k',
  scopes: new Set(['*']),
};

/** A directory in memory that counts, and answers when it is told to. */
function directoryOf(keys: Map<string, KnownKey>) {
  let lookUps = 0;
  let gate: Promise<void> | undefined;
  const directory: KeyDirectory = {
    async byDigest(digest) {
      lookUps += 1;
      const known = keys.get(digest) ?? null;
      await gate;
      return known;
    },
  };
  return { directory, lookUps: () => lookUps, holdUntil: (until: Promise<void>) => (gate = until) };
}

const key = createApiKey();
const known = (expiresAt?: number): Map<string, KnownKey> => new Map([[digestOf(key), { principal, expiresAt }]]);

test('a known key is looked up once, then answered at once', async () => {
  const { directory, lookUps } = directoryOf(known());
  const authenticator = cachingAuthenticator(directory);
  expect(await authenticator.authenticate(key)).toBe(principal);
  expect(authenticator.authenticate(key)).toBe(principal);
  expect(lookUps()).toBe(1);
});

test('junk never reaches the directory', () => {
  const { directory, lookUps } = directoryOf(known());
  const authenticator = cachingAuthenticator(directory);
  for (const junk of ['', 'x', `${key}x`, key.slice(0, -1), `${key.slice(0, -1)}!`]) {
    expect(authenticator.authenticate(junk)).toBeNull();
  }
  expect(lookUps()).toBe(0);
});

test('requests that arrive together share one look-up', async () => {
  const { directory, lookUps } = directoryOf(known());
  const authenticator = cachingAuthenticator(directory);
  const found = await Promise.all([authenticator.authenticate(key), authenticator.authenticate(key)]);
  expect(found).toEqual([principal, principal]);
  expect(lookUps()).toBe(1);
});

test('an unknown key is null, and not asked for again at once', async () => {
  const { directory, lookUps } = directoryOf(new Map());
  const authenticator = cachingAuthenticator(directory);
  expect(await authenticator.authenticate(key)).toBeNull();
  expect(authenticator.authenticate(key)).toBeNull();
  expect(lookUps()).toBe(1);
});

test('a key that expires while it is cached is refused from then on', async () => {
  let now = 1_000;
  const { directory } = directoryOf(known(2_000));
  const authenticator = cachingAuthenticator(directory, { now: () => now });
  expect(await authenticator.authenticate(key)).toBe(principal);
  now = 2_000;
  expect(authenticator.authenticate(key)).toBeNull();
});

test('a revoked key is refused after it was forgotten', async () => {
  const keys = known();
  const { directory } = directoryOf(keys);
  const authenticator = cachingAuthenticator(directory);
  await authenticator.authenticate(key);
  keys.clear();
  expect(authenticator.authenticate(key)).toBe(principal);
  authenticator.forget(digestOf(key));
  expect(await authenticator.authenticate(key)).toBeNull();
});

test.each(['forget', 'clear'] as const)('a look-up that %s overtakes is not kept', async (how) => {
  const keys = known();
  const { directory, holdUntil } = directoryOf(keys);
  const authenticator = cachingAuthenticator(directory);
  const { promise, resolve } = Promise.withResolvers<void>();
  holdUntil(promise);
  const before = authenticator.authenticate(key);
  keys.clear();
  if (how === 'forget') authenticator.forget(digestOf(key));
  else authenticator.clear();
  resolve();
  expect(await before).toBe(principal);
  expect(await authenticator.authenticate(key)).toBeNull();
});

test('a failed look-up is passed on, and the next one asks again', async () => {
  let down = true;
  const authenticator = cachingAuthenticator({
    async byDigest() {
      if (down) throw new Error('down');
      return { principal };
    },
  });
  await expect(authenticator.authenticate(key)).rejects.toThrow('down');
  down = false;
  expect(await authenticator.authenticate(key)).toBe(principal);
});
