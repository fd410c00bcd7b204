import { describe, expect, it } from 'vitest';

import { hashSlot, hashTag } from './hash-slot.ts';

describe('slot of a key', () => {
  it.each([
    // The check value of CRC-16/XMODEM, and what `CLUSTER KEYSLOT` of Redis 7.0 answered.
    ['123456789', 0x31c3],
    ['foo', 12_182],
    ['', 0],
    ['ключ 🎈', 2_064],
    ['a{ключ}b', 10_303],
  ])('%j is %i', (key, slot) => {
    expect(hashSlot(key)).toBe(slot);
  });

  it.each([
    ['parley:rm:v8:channel:{o:c}:revision', 'o:c'],
    ['a{b}{c}', 'b'],
    ['a{{b}}', '{b'],
    ['a{}{b}', 'a{}{b}'],
    ['a{b', 'a{b'],
    ['a}b{c}', 'c'],
    ['none', 'none'],
  ])('is that of its hash tag: of %j %j', (key, tag) => {
    expect(hashTag(key)).toBe(tag);
  });
});
