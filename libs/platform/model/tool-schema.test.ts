import { describe, expect, it } from 'vitest';
import { z } from 'zod';

import { strictSchemaOf } from './tool-schema.ts';

const of = (jsonSchema: Record<string, unknown>) => strictSchemaOf({ jsonSchema });
const property = (schema: unknown) =>
  (of({ type: 'object', properties: { a: schema } })?.['properties'] as Record<string, unknown>)?.['a'];
const text = { type: 'string' };

describe('the schema of a tool', () => {
  it('is an object with properties, whatever is missing', () => {
    const empty = { type: 'object', properties: {} };
    expect(of({})).toEqual(empty);
    expect(of({ type: 'object' })).toEqual(empty);
    expect(of({ type: ['object', 'null'], properties: null, additionalProperties: false })).toEqual(empty);
    expect(of({ $schema: 'http://json-schema.org/draft-07/schema#', title: 'Input' })).toEqual(empty);
  });

  it('keeps what all endpoints know', () => {
    const schema = {
      type: 'object',
      properties: {
        name: { type: 'string', description: 'Of the order', minLength: 1, enum: ['a', 'b'] },
        count: { type: 'integer', minimum: 1, maximum: 10 },
        tags: { type: 'array', items: text, maxItems: 3 },
      },
      required: ['name'],
    };
    expect(of(schema)).toEqual(schema);
  });

  it('has required names where they belong', () => {
    const a = { type: 'object', properties: { a: text }, required: ['a'] };
    expect(of({ type: 'object', properties: { a: { ...text, required: true } } })).toEqual(a);
    expect(of({ type: 'object', properties: { a: text, required: ['a'] } })).toEqual(a);
    expect(of({ type: 'object', properties: { a: text }, required: ['a', 'b', 7] })).toEqual(a);
    expect(of({ type: 'object', properties: { a: text }, required: true })).toEqual({ ...a, required: undefined });
    const named = { required: { type: 'boolean' } };
    expect(of({ type: 'object', properties: named })).toEqual({ type: 'object', properties: named });
  });

  it('has one type everywhere, by its name', () => {
    expect(property({ type: ['string', 'null'] })).toEqual(text);
    expect(property({ type: ['string', 'integer'] })).toEqual({ anyOf: [text, { type: 'integer' }] });
    expect(property({ type: 'dict' })).toEqual({ type: 'object', properties: {} });
    expect(property({ type: 'float' })).toEqual({ type: 'number' });
    expect(property({ type: 'any', description: 'x' })).toEqual({ description: 'x' });
    expect(property(true)).toEqual({});
    expect(property({ enum: ['a', 'a', ''] })).toEqual({ ...text, enum: ['a'] });
    expect(property({ const: 'a' })).toEqual({ ...text, enum: ['a'] });
    expect(property({ type: 'integer', enum: [1, 2] })).toEqual({ type: 'integer', description: 'One of [1,2].' });
  });

  it('has items of a type', () => {
    expect(property({ type: 'array' })).toEqual({ type: 'array', items: text });
    expect(property({ type: 'array', items: {} })).toEqual({ type: 'array', items: text });
    expect(property({ type: 'array', items: [{ type: 'number' }, text] })).toEqual({
      type: 'array',
      items: { anyOf: [{ type: 'number' }, text] },
    });
  });

  it('has no alternatives that are null, and none at its root', () => {
    expect(property({ anyOf: [text, { type: 'null' }], description: 'x', default: null })).toEqual({
      ...text,
      description: 'x',
    });
    expect(property({ oneOf: [text, { type: 'number' }] })).toEqual({ anyOf: [text, { type: 'number' }] });
    const a = { type: 'object', properties: { a: text, c: text }, required: ['a', 'c'] };
    const b = { type: 'object', properties: { b: text, c: text }, required: ['b', 'c'] };
    const all = { a: text, b: text, c: text };
    expect(of({ oneOf: [a, b] })).toEqual({ type: 'object', properties: all, required: ['c'] });
    expect(of({ allOf: [a, b] })).toEqual({ type: 'object', properties: all, required: ['a', 'c', 'b'] });
  });

  it('has no references', () => {
    const definitions = { Name: text, Tree: { type: 'object', properties: { next: { $ref: '#/$defs/Tree' } } } };
    const given = { type: 'object', properties: { n: { $ref: '#/$defs/Name', description: 'x' } }, $defs: definitions };
    expect(of(given)?.['properties']).toEqual({ n: { ...text, description: 'x' } });
    const tree = { type: 'object', properties: { t: { $ref: '#/$defs/Tree' } }, $defs: definitions };
    expect(of(tree)?.['properties']).toEqual({ t: { type: 'object', properties: { next: {} } } });
    expect(property({ $ref: 'https://example.org/other.json' })).toEqual({});
  });

  it('moves what some endpoints refuse into descriptions', () => {
    expect(property({ ...text, description: 'Mail.', format: 'email', pattern: '^.+$', default: 'a@b' })).toEqual({
      ...text,
      description: 'Mail. format: email pattern: ^.+$ default: a@b',
    });
    expect(property({ type: 'integer', maximum: Number.MAX_SAFE_INTEGER })).toEqual({ type: 'integer' });
  });

  it('is none for what cannot have this form', () => {
    expect(of({ type: 'string' })).toBeNull();
    expect(of({ type: 'object', properties: { 'a b': text } })).toBeNull();
    expect(
      of({ type: 'object', properties: { a: { type: 'object', properties: { ['x'.repeat(65)]: text } } } }),
    ).toBeNull();
  });

  it('of a tool of Parley is the same', () => {
    const input = z.object({ query: z.string().min(1).max(10).describe('What'), exact: z.boolean().optional() });
    expect(strictSchemaOf(input)).toEqual({
      type: 'object',
      properties: { query: { ...text, minLength: 1, maxLength: 10, description: 'What' }, exact: { type: 'boolean' } },
      required: ['query'],
    });
  });
});
