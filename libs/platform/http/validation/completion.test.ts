import { describe, expect, it } from 'vitest';
import { z } from 'zod';

import { completionOf } from './completion.ts';

const leaf = z.object({ label: z.string(), state: z.enum(['pending', 'done']).default('pending') });
const text = z.object({ text: z.string(), kind: z.literal('text').default('text') });
const list = z.object({ items: z.array(leaf), kind: z.literal('list').default('list') });
const schema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('a'), note: z.string().nullable().default(null), leaf: leaf.nullable().default(null) }),
  z.object({ type: z.literal('b'), update: z.union([text, list]), data: z.record(z.string(), z.unknown()) }),
  z.object({ type: z.literal('c'), plain: z.string() }),
]);
const complete = completionOf(z.array(schema));

describe('completionOf', () => {
  it.each([
    ['absent members, with their defaults', { type: 'a' }, { type: 'a', note: null, leaf: null }],
    ['members of members', { type: 'a', leaf: { label: 'l' } }, { leaf: { label: 'l', state: 'pending' } }],
    ['members of a union without tags', { type: 'b', update: { text: 't' } }, { update: { text: 't', kind: 'text' } }],
    [
      'members of its lists',
      { type: 'b', update: { items: [{ label: 'l' }] } },
      { update: { items: [{ label: 'l', state: 'pending' }], kind: 'list' } },
    ],
  ])('adds %s', (_what, given, completed) => {
    expect(complete([given])).toMatchObject([completed]);
    expect(complete(complete([given]))).toEqual(complete([given]));
  });

  it.each([
    ['what lacks nothing', { type: 'a', note: 'n', leaf: { label: 'l', state: 'done' } }],
    ['members of free maps', { type: 'b', update: { text: 't', kind: 'text' }, data: { type: 'a', leaf: {} } }],
    ['unknown tags', { type: 'z' }],
    ['unknown members', { type: 'c', plain: 'p', more: 1 }],
    ['values of other types', { type: 'a', note: 1, leaf: 7 }],
    ['values that are no objects', 'text'],
  ])('leaves %s as they are', (_what, given) => {
    expect(complete([given])[0]).toBe(given);
  });
});
