import fc from 'fast-check';
import { expect, test } from 'vitest';

import { admitJson, admitText, TextStream } from './text.ts';

/** UTF-16 units, pairs and lone surrogates among them. */
const units = fc
  .array(fc.constantFrom(0x00, 0x41, 0xe4, 0xd83d, 0xde00, 0xd800, 0xdfff, 0xfffd))
  .map((codes) => String.fromCharCode(...codes));

test.each([
  ['a lone high surrogate', 'a\ud83d', 'a\ufffd'],
  ['a lone low surrogate', '\ude00b', '\ufffdb'],
  ['a pair in the wrong order', '\ude00\ud83d', '\ufffd\ufffd'],
  ['a pair', '😀', '😀'],
  ['control characters', 'a\0\u001b[31mb', 'a\0\u001b[31mb'],
])('%s', (_what, text, admitted) => {
  expect(admitText(text)).toBe(admitted);
  expect(admitJson(text)).toBe(admitted);
});

test('a cut is between two characters', () => {
  expect(admitText('ab😀cd', 3)).toBe('ab');
  expect(admitText('ab😀cd', 4)).toBe('ab😀');
  expect(admitText('ab', 2)).toBe('ab');
  expect(admitText('😀', 0)).toBe('');
});

test('any text is well-formed and within the bound afterwards, and unchanged if it was so before', () => {
  fc.assert(
    fc.property(units, fc.nat(20), (text, max) => {
      const admitted = admitText(text, max);
      expect(admitted.isWellFormed()).toBe(true);
      expect(admitted.length).toBeLessThanOrEqual(max);
      expect(admitText(admitted, max)).toBe(admitted);
      expect(admitted).toBe(text.isWellFormed() && text.length <= max ? text : admitted);
    }),
  );
});

test('texts and names at every level of a JSON value are admitted', () => {
  const value: unknown = JSON.parse('{"a":["x\\ud800",{"n\\udc00":{"deep":"\\ud83d"}}],"n":1,"z":null}');
  expect(admitJson(value)).toEqual({ a: ['x\ufffd', { 'n\ufffd': { deep: '\ufffd' } }], n: 1, z: null });
});

test('a value without such texts stays the same object', () => {
  const value = { a: ['x', { deep: '😀' }], at: null, n: NaN };
  expect(admitJson(value)).toBe(value);
});

test('a text in parts is the same as the whole text', () => {
  fc.assert(
    fc.property(fc.array(units), (parts) => {
      const stream = new TextStream();
      const admitted = [...parts.map((part) => stream.add(part)), stream.end()];
      expect(admitted.every((part) => part.isWellFormed())).toBe(true);
      expect(admitted.join('')).toBe(admitText(parts.join('')));
    }),
  );
});
