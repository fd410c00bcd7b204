import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { isKept, jsonLimitProblem, parseJson } from './json-numbers.ts';

describe('a number of JSON', () => {
  it.each([
    '0',
    '1',
    '-1',
    '0.1',
    '1.0',
    '-0.5',
    '1.50',
    '1e2',
    '1E+2',
    '100e-2',
    '0e999999999999',
    '0.000e-5',
    '1e21',
    '1e23',
    '123456789012345',
    '9007199254740991',
    '9007199254740992',
    '12345678901234567000',
    '0.30000000000000004',
    '5e-324',
    '1.7976931348623157e308',
    `1${'0'.repeat(308)}`,
    `1.${'0'.repeat(500)}`,
  ])('is kept where a double has its decimal value: %s', (literal) => expect(isKept(literal)).toBe(true));

  it.each([
    '-0',
    '-0.0',
    '-0e5',
    '9007199254740993',
    '12345678901234567890',
    '0.1000000000000000055',
    '0.12345678901234567890',
    '1e309',
    '1e400',
    '-1e999',
    '1e-400',
    '1e99999999999999999999',
    '1.7976931348623159e308',
    '4e-324',
    `1${'0'.repeat(309)}`,
    `0.${'0'.repeat(400)}1`,
  ])('is not kept where a double has another one, or loses the sign: %s', (literal) =>
    expect(isKept(literal)).toBe(false),
  );
});

describe('a parsed JSON text', () => {
  it('is what JSON.parse gives, where all numbers are kept', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        fc.pre(!text.includes('-0'));
        expect(parseJson(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it('is written out with the very numbers that were read, whatever they are and wherever they stand', () => {
    const digits = fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: 25 });
    const number = fc
      .tuple(fc.constantFrom('', '-'), digits, fc.option(digits), fc.option(fc.integer({ min: -400, max: 400 })))
      .map(([sign, whole, fraction, exponent]) => {
        const integer = whole.replace(/^0+(?=\d)/, '');
        return `${sign}${integer}${fraction === null ? '' : `.${fraction}`}${exponent === null ? '' : `e${exponent}`}`;
      });
    const kept = (literal: string): string => (isKept(literal) ? JSON.stringify(Number(literal)) : literal);
    fc.assert(
      fc.property(fc.array(number, { minLength: 1 }), fc.string(), (numbers, text) => {
        const members = numbers.map((literal, index) => [JSON.stringify(`n${index}${text}`), literal] as const);
        const json = (of: (literal: string) => string) =>
          `{${members.map(([name, literal]) => `${name}:[${of(literal)},${name}]`).join()}}`;
        expect(JSON.stringify(parseJson(json((literal) => ` ${literal}\n`)))).toBe(json(kept));
      }),
    );
  });

  it('has raw numbers for numbers only, not for digits within strings', () => {
    const text = '{"12345678901234567890":"-0 9007199254740993 \\\\","b":"\\"","c":"\\\\\\" 1e999"}';
    expect(parseJson(text)).toEqual(JSON.parse(text));
    expect(JSON.isRawJSON(parseJson('-0'))).toBe(true);
  });

  it('throws for what is no JSON, also where numbers are involved', () => {
    for (const text of ['', '-', '01234567890123456789', '[12345678901234567890', '"', '"\\"', '1e', '--0', '[-0,]']) {
      expect(() => parseJson(text)).toThrow(SyntaxError);
    }
  });
});

const limits = { depth: 3, nodes: 5, bytes: 40 };
const problem = (value: object) => jsonLimitProblem(value, limits)?.msg;

test('values at the limits pass', () => {
  expect(problem({})).toBeUndefined();
  expect(problem({ a: { b: { c: 1 } } })).toBeUndefined();
  expect(problem({ a: [1, 2, 3, 4] })).toBeUndefined();
  expect(problem({ a: 'x'.repeat(32) })).toBeUndefined();
});

test('one level, one value or one byte more does not', () => {
  expect(problem({ a: { b: { c: {} } } })).toContain('3 levels');
  expect(problem({ a: [[[]]] })).toContain('3 levels');
  expect(problem({ a: [1, 2, 3, 4, 5] })).toContain('5 values');
  expect(problem({ a: 'x'.repeat(33) })).toContain('40 bytes');
  expect(problem({ a: 'é'.repeat(17) })).toContain('40 bytes');
});

test('what would come back from storage as something else is refused', () => {
  expect(problem({ a: parseJson('1e999') })).toContain('finite');
  expect(problem({ a: [parseJson('9007199254740993')] })).toContain('represented exactly');
  expect(problem({ a: '\ud800' })).toContain('unicode');
  expect(problem({ '\udfff': 1 })).toContain('unicode');
});

test('a value far beyond the limits costs no more than one at them', () => {
  let deep: object = {};
  for (let level = 0; level < 100_000; level += 1) deep = { deep };
  expect(problem(deep)).toContain('3 levels');
  expect(problem({ wide: Array.from({ length: 1_000_000 }, () => 1) })).toContain('5 values');
});
