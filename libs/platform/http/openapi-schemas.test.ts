import { describe, expect, it } from 'vitest';

import { withDiscriminators } from './openapi-schemas.ts';

const tagged = (type: string, required = ['type']): object => ({
  type: 'object',
  properties: { type: { type: 'string', const: type }, other: { type: 'string' } },
  required,
});
const schemas = { A: tagged('a'), B: tagged('b'), SameAsA: tagged('a'), Loose: tagged('c', []) };
const union = (...names: string[]): { oneOf: object[] } => ({
  oneOf: names.map((name) => ({ $ref: `#/components/schemas/${name}` })),
});

describe('withDiscriminators', () => {
  it('adds the property that discriminates the alternatives to every union', () => {
    const discriminator = {
      propertyName: 'type',
      mapping: { a: '#/components/schemas/A', b: '#/components/schemas/B' },
    };
    expect(withDiscriminators({ list: [{ items: union('A', 'B') }] }, schemas)).toEqual({
      list: [{ items: { ...union('A', 'B'), discriminator } }],
    });
  });

  it.each([
    ['alternatives that share a value', union('A', 'SameAsA')],
    ['an alternative that may lack it', union('A', 'Loose')],
    ['an alternative that is not named', { oneOf: [...union('A').oneOf, tagged('b')] }],
    ['an alternative that is not declared', union('A', 'Undeclared')],
  ])('leaves %s alone', (_what, document) => {
    expect(withDiscriminators(document, schemas)).toEqual(document);
  });
});
