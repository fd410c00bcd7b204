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

test.each([
  ['{"a": {"b": [1, 9007199254740993]}}', ['body', 'a', 'b', 1], 'value_error', '9007199254740993'],
  ['{"n": 12345678901234567890, "m": "1"}', ['body', 'n'], 'value_error', '12345678901234567890'],
  ['{"n": -0}', ['body', 'n'], 'value_error', '-0'],
  ['-0.0', ['body'], 'value_error', '-0.0'],
  ['[0.1000000000000000055]', ['body', 0], 'value_error', '0.1000000000000000055'],
  ['{"n": 1e400}', ['body', 'n'], 'finite_number', '1e400'],
])('a number that a double does not carry back is refused, and shown as it was sent: %s', (body, loc, type, input) => {
  const { errors } = refusalOf(body);
  expect(errors).toMatchObject([{ type, loc }]);
  expect(JSON.stringify(errors[0]?.input)).toBe(input);
});

test('all such numbers of a body are listed with their locations, up to 100', () => {
  const { errors } = refusalOf(
    '{"a": [{}, -0, ["]", 1e999]], "x\\ny\\u0041": {"b": {"-0": 1, "c": 9007199254740993}}}',
  );
  expect(errors.map(({ loc }) => loc)).toEqual([
    ['body', 'a', 1],
    ['body', 'a', 2, 1],
    ['body', 'x\nyA', 'b', 'c'],
  ]);
  expect(refusalOf(`[${'-0,'.repeat(10_000)}0]`).errors).toHaveLength(100);
});

test.each(['{"constructor": "a builder"}', '{"prototype": 1}', '{"text": "__proto__ and \\u0041"}', '{"proto": {}}'])(
  'a name or text that only looks like it passes: %s',
  (body) => expect(parseJsonBody(Buffer.from(body))).toEqual(JSON.parse(body)),
);
