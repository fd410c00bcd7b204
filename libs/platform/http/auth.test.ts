import { expect, test } from 'vitest';
import { hasScope, presentedKey } from './auth.ts';

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

test('a scope is covered by itself, by its group and by everything', () => {
  for (const held of ['channels:read', 'channels:*', '*'])
    expect(hasScope(new Set([held]), 'channels:read')).toBe(true);
});

test('a scope is not covered by another action, another group, or a part of its name', () => {
  for (const held of ['channels:write', 'agents:*', 'channels', 'chan:*', 'channels:rea', ':*']) {
    expect(hasScope(new Set([held]), 'channels:read')).toBe(false);
  }
});
