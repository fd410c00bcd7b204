import { expect, test } from 'vitest';

import { digestOf } from '#libs/platform/http/index.ts';

import { KeyAuthenticator } from './key-authenticator.ts';
import { newKey } from './key-form.ts';

const principal = {
  organizationId: 'org',
  principalType: 'service',
  principalId: 'robot',
  keyId: 'key',
  scopes: new Set<string>(),
  expiresAtMs: null,
} as const;

/** Says that every key works, as read models do that lack the newest events. */
const laggingBehind = {
  byDigest: async (digest: string) => ({ digest, principal, expiresAtMs: null }),
};

test('a key that was revoked here stays revoked when the connection was lost and stands again', async () => {
  const { secret, id } = newKey();
  const authenticator = new KeyAuthenticator(laggingBehind);
  authenticator.setHearing(true);
  expect(await authenticator.authenticate(secret)).toBe(principal);
  authenticator.forget({ kind: 'revoked', keyId: id });
  expect(await authenticator.authenticate(secret)).toBeNull();
  authenticator.setHearing(false);
  authenticator.setHearing(true);
  expect(await authenticator.authenticate(secret)).toBeNull();
});

test('a key that was unknown is asked for again when the connection stands again', async () => {
  const { secret } = newKey();
  const known = new Set<string>();
  const authenticator = new KeyAuthenticator({
    byDigest: async (digest) => (known.has(digest) ? laggingBehind.byDigest(digest) : null),
  });
  expect(await authenticator.authenticate(secret)).toBeNull();
  known.add(digestOf(secret));
  authenticator.setHearing(true);
  expect(await authenticator.authenticate(secret)).toBe(principal);
});
