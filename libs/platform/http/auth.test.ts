import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { assert, property, uint8Array } from 'fast-check';
import {
  API_KEY_PREFIX,
  createApiKey,
  digestOf,
  isWellFormedApiKey,
  keyOf,
  presentedKey,
  type Principal,
  requireScope,
} from './auth.ts';

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

test('each request of a connection presents the key of its own header', () => {
  const socket = {};
  const request = (authorization?: string) => ({ socket, headers: { authorization } }) as IncomingMessage;
  for (const header of ['Bearer one', 'Bearer one', 'Token two', undefined, 'Bearer one', 'a key', 'a key']) {
    const key = presentedKey(header);
    expect(keyOf(request(header))).toEqual(key && { key, digest: digestOf(key) });
  }
  // Hashed once.
  expect(keyOf(request('Bearer two'))).toBe(keyOf(request('Bearer two')));
});

const holding = (...scopes: string[]): Principal => ({
  organizationId: 'org',
  principalType: 'service',
  principalId: 'robot',
  keyId: 'key',
  scopes: new Set(scopes),
  isMember: false,
  expiresAtMs: null,
});

test('a scope that the key has is let through', () => {
  expect(() => requireScope(holding('read', 'write'), 'write')).not.toThrow();
});

test('no scope includes another one', () => {
  for (const held of ['read', 'admin', 'platform', '*', 'writes', 'writ']) {
    expect(() => requireScope(holding(held), 'write')).toThrow('lacks the scope write');
  }
});

const key = createApiKey();
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

test('a key has its prefix, 43 characters of secret and 6 of checksum', () => {
  expect(key).toMatch(new RegExp(`^${API_KEY_PREFIX}[0-9A-Za-z]{49}$`));
  expect(isWellFormedApiKey(key)).toBe(true);
});

test('the smallest and the largest secret have the same width', () => {
  for (const byte of [0x00, 0xff]) {
    const extreme = createApiKey(new Uint8Array(32).fill(byte));
    expect(extreme).toHaveLength(key.length);
    expect(isWellFormedApiKey(extreme)).toBe(true);
  }
});

test('different secrets give different keys, and every key is well-formed', () => {
  assert(
    property(uint8Array({ minLength: 32, maxLength: 32 }), (random) => {
      const made = createApiKey(random);
      return isWellFormedApiKey(made) && (made === key) === (digestOf(made) === digestOf(key));
    }),
  );
  expect(createApiKey(randomBytes(32))).not.toBe(createApiKey(randomBytes(32)));
});

test('a key with any one character changed is refused', () => {
  for (let at = 0; at < key.length; at += 1) {
    for (const other of ALPHABET) {
      if (other === key[at]) continue;
      expect(isWellFormedApiKey(key.slice(0, at) + other + key.slice(at + 1))).toBe(false);
    }
  }
});

test.each(['', 'parley_live_', key.slice(1), key.slice(0, -1), `${key}A`, ` ${key}`, key.replace('_live_', '_test_')])(
  'refuses %j',
  (junk) => expect(isWellFormedApiKey(junk)).toBe(false),
);

test('the digest is the SHA-256 in hex', () => {
  expect(digestOf('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
});
