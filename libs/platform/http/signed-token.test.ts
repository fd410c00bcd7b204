import { array, assert, jsonValue, property, string } from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalJson, TokenSigner } from './signed-token.ts';

const signer = new TokenSigner('a secret of sixteen bytes or more');

test('a token opens in its own context, to what was sealed', () => {
  assert(
    property(array(string()), jsonValue(), (context, payload) => {
      const token = signer.seal(context, payload);
      expect(token).toMatch(/^[A-Za-z0-9_-]+$/);
      expect(signer.open(context, token)).toEqual(JSON.parse(JSON.stringify(payload)));
    }),
  );
});

test('a token does not open in another context, also when the parts join to the same text', () => {
  const token = signer.seal(['ab', 'c'], [1]);
  for (const other of [['a', 'bc'], ['abc'], ['ab', 'c', ''], ['ab'], []])
    expect(signer.open(other, token)).toBeUndefined();
});

test('a token does not open with another secret', () => {
  const token = signer.seal(['a'], [1]);
  expect(new TokenSigner('another secret of sixteen').open(['a'], token)).toBeUndefined();
});

test('a token with any one character changed does not open', () => {
  const token = signer.seal(['a'], [2, 'some key']);
  for (let at = 0; at < token.length - 1; at += 1) {
    const other = token[at] === 'A' ? 'B' : 'A';
    expect(signer.open(['a'], token.slice(0, at) + other + token.slice(at + 1))).toBeUndefined();
  }
});

test.each(['', 'x', '!'.repeat(40), 'A'.repeat(3000), 'AAAAAAAAAAAAAAAAAAAAAAAAAAAA'])(
  'junk does not open: %j',
  (junk) => expect(signer.open(['a'], junk)).toBeUndefined(),
);

test('a secret that is too short is refused', () => {
  expect(() => new TokenSigner('short')).toThrow(RangeError);
});

test('texts and tokens of former versions stay the same: requests are repeated, and positions sent, after an update', () => {
  const value = { b: [1, { d: null, c: 'é"\n' }, undefined], '10': -0, '9': true, a: { ü: 1.5e30, Z: [] } };
  const text = '{"10":0,"9":true,"a":{"Z":[],"ü":1.5e+30},"b":[1,{"c":"é\\"\\n","d":null},null]}';
  expect(canonicalJson(value)).toBe(text);
  expect(signer.seal(['position', 'ä'], ['channel-1', 7])).toBe('Cym5u2WGY8TFTzu2uOrvVlsiY2hhbm5lbC0xIiw3XQ');
});

test('the order of members does not matter, the order of items does', () => {
  expect(canonicalJson({ b: 1, a: [{ d: 1, c: 2 }] })).toBe(canonicalJson({ a: [{ c: 2, d: 1 }], b: 1 }));
  expect(canonicalJson([1, 2])).not.toBe(canonicalJson([2, 1]));
});

test('a member that is undefined does not count', () => {
  expect(canonicalJson({ a: undefined, b: 1 })).toBe(canonicalJson({ b: 1 }));
});

test('different values give different texts, and the text is JSON of the value', () => {
  assert(
    property(jsonValue(), (value) => {
      expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});
