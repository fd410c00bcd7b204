import { expect, test } from 'vitest';
import { ValidationFailure } from './errors.ts';
import { parseJsonBody } from './json-body.ts';

function refusalOf(body: string | Buffer): ValidationFailure {
  try {
    parseJsonBody(Buffer.from(body));
  } catch (error) {
    if (error instanceof ValidationFailure) return error;
    throw error;
  }
  throw new Error('the body was accepted');
}

test('JSON is parsed, a byte order mark is passed over, nothing is undefined', () => {
  expect(parseJsonBody(Buffer.from('{"a":[1,"é"]}'))).toEqual({ a: [1, 'é'] });
  expect(parseJsonBody(Buffer.from('\ufeff{}'))).toEqual({});
  expect(parseJsonBody(Buffer.alloc(0))).toBeUndefined();
});

test('bytes that are not UTF-8 are json_invalid', () => {
  expect(refusalOf(Buffer.from([0x22, 0xff, 0xfe, 0x22])).errors[0]).toMatchObject({ type: 'json_invalid' });
});

test.each([
  ['[', ']'],
  ['{"a":', '}'],
])('nesting of 100 levels of %j passes, 101 and 20,000 do not', (open, close) => {
  const nested = (depth: number) => open.repeat(depth) + (open === '[' ? '' : '1') + close.repeat(depth);
  expect(parseJsonBody(Buffer.from(nested(100)))).toBeTypeOf('object');
  for (const depth of [101, 20_000]) expect(refusalOf(nested(depth)).errors[0]).toMatchObject({ type: 'json_invalid' });
});

test('brackets in strings are no nesting', () => {
  const text = '['.repeat(500);
  expect(parseJsonBody(Buffer.from(JSON.stringify({ text, quoted: `\\"${text}` })))).toMatchObject({ text });
});

test.each([
  ['{"__proto__": {"a": 1}}', ['body', '__proto__']],
  ['{"a": [{"__proto__": 1}]}', ['body', 'a', 0, '__proto__']],
  ['{"\\u005f_proto__": 1}', ['body', '__proto__']],
  ['{"constructor": {"prototype": {"a": 1}}}', ['body', 'constructor', 'prototype']],
  ['{"a": {"constr\\u0075ctor": {"prototype": 1}}}', ['body', 'a', 'constructor', 'prototype']],
])('a name that reaches a prototype is refused: %s', (body, loc) => {
  expect(refusalOf(body).errors).toMatchObject([{ type: 'extra_forbidden', loc }]);
});

test.each(['{"constructor": "a builder"}', '{"prototype": 1}', '{"text": "__proto__ and \\u0041"}', '{"proto": {}}'])(
  'a name or text that only looks like it passes: %s',
  (body) => expect(parseJsonBody(Buffer.from(body))).toEqual(JSON.parse(body)),
);
