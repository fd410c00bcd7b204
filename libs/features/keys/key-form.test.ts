import { describe, expect, it } from 'vitest';

import { canBeKey, isSameDigest, newKey } from './key-form.ts';

describe('the form of a key', () => {
  it('has a checksum, so that mistyped keys are refused before any look-up', () => {
    const { secret } = newKey();
    const mistyped = `${secret.slice(0, 20)}${secret[20] === 'a' ? 'b' : 'a'}${secret.slice(21)}`;
    expect(canBeKey(secret)).toBe(true);
    expect(canBeKey(mistyped)).toBe(false);
    expect(canBeKey(`${secret}0`)).toBe(false);
    expect(canBeKey('parley_live_')).toBe(false);
  });

  it("accepts an operator's own key with an allowed length and allowed characters", () => {
    expect(canBeKey('a'.repeat(32))).toBe(true);
    expect(canBeKey('Own-key_0123456789'.repeat(2))).toBe(true);
    expect(canBeKey('a'.repeat(31))).toBe(false);
    expect(canBeKey('a'.repeat(257))).toBe(false);
    expect(canBeKey(`${'a'.repeat(32)} `)).toBe(false);
    expect(canBeKey(`${'a'.repeat(32)}\n`)).toBe(false);
    expect(canBeKey('ä'.repeat(32))).toBe(false);
  });

  it('derives an id and last characters that do not reveal the secret', () => {
    const key = newKey('x'.repeat(40));
    expect(key.id).toBe(key.digest.slice(0, 32));
    expect(key.id).toMatch(/^[0-9a-f]{32}$/);
    expect(key.lastFour).toBe('xxxx');
    expect(newKey().secret).not.toBe(newKey().secret);
  });

  it('compares digests as a whole', () => {
    expect(isSameDigest('ab', 'ab')).toBe(true);
    expect(isSameDigest('ab', 'ac')).toBe(false);
    expect(isSameDigest('ab', 'abc')).toBe(false);
  });
});
