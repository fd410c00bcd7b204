import { expect, test } from 'vitest';
import { presentedKey, requireScope } from './auth.ts';
import type { Principal } from './auth.ts';

test.each([
  ['key', 'key'],
  ['Bearer key', 'key'],
  ['bearer key', 'key'],
  ['BEARER   key', 'key'],
  ['Token key', 'key'],
  ['token key', 'key'],
  ['bearerkey', 'bearerkey'],
  ['tokenkey', 'tokenkey'],
])('reads the key in %j', (header, key) => expect(presentedKey(header)).toBe(key));

test.each([undefined, '', 'Bearer ', 'Token ', 'Basic dXNlcjpwYXNz', 'a key'])('finds no key in %j', (header) =>
  expect(presentedKey(header)).toBeNull(),
);

const holding = (...scopes: string[]): Principal => ({
  organizationId: 'org',
  principalType: 'service',
  principalId: 'robot',
  keyId: 'key',
  scopes: new Set(scopes),
  expiresAtMs: null,
});

test('a scope that the key has is let through', () => {
  expect(() => requireScope(holding('read', 'write'), 'write')).not.toThrow();
});

test('no scope stands for another one', () => {
  for (const held of ['read', 'admin', 'platform', '*', 'writes', 'writ']) {
    expect(() => requireScope(holding(held), 'write')).toThrow('lacks the scope write');
  }
});
