import { describe, expect, it } from 'vitest';
import { z } from 'zod';

import { field, fields, group, namedField, shown, shownFields } from './fields.ts';

const nullable = z.string().nullable();

const table = fields({
  id: shown(z.string(), ({ id }: { readonly id: string }) => id),
  name: field('name', z.string(), { input: z.string().min(1) }),
  images: group({
    image_url: field('imageUrl', nullable, { byDefault: null, input: nullable.optional() }),
    banner_url: field('bannerUrl', nullable, { byDefault: null, input: nullable.optional() }),
  }),
  colour: field('colour', z.string(), { byDefault: 'red', input: z.string().nullish() }),
  owner: namedField('owner', z.object({ id: z.string() }).nullable(), { byDefault: null, input: nullable.optional() }),
  is_new: shown(z.boolean(), ({ isNew }: { readonly isNew: boolean }) => isNew),
  hidden: field('isHidden', z.boolean().optional(), { byDefault: false, output: z.boolean() }),
});

const state = { id: '1', name: 'A', imageUrl: 'i', bannerUrl: null, colour: 'blue', owner: { id: '2' }, isNew: true };

describe('a table of fields', () => {
  it('shows the members in their order, with the default of fields that earlier events lack', () => {
    expect(JSON.stringify(table.resource(state))).toBe(
      '{"id":"1","name":"A","images":{"image_url":"i","banner_url":null},"colour":"blue","owner":{"id":"2"},"is_new":true,"hidden":false}',
    );
    expect(Object.keys(table.output)).toEqual(['id', 'name', 'images', 'colour', 'owner', 'is_new', 'hidden']);
  });

  it('has the schema of what is stored, of what requests may set, and the defaults', () => {
    expect(Object.keys(table.stored)).toEqual(['name', 'imageUrl', 'bannerUrl', 'colour', 'owner', 'isHidden']);
    expect(Object.keys(table.input)).toEqual(['name', 'images', 'colour', 'owner']);
    expect(table.defaults).toEqual({ imageUrl: null, bannerUrl: null, colour: 'red', owner: null, isHidden: false });
    expect(z.object(table.input).parse({ name: 'B', images: null })).toEqual({ name: 'B', images: null });
  });

  it('finds what a request sets: absent members stay undefined, null is kept, and a null group is null in each', () => {
    expect(table.changes({ name: 'B', images: { image_url: 'j' } })).toEqual({ name: 'B', imageUrl: 'j' });
    expect(table.changes({ images: null, colour: null })).toEqual({ imageUrl: null, bannerUrl: null, colour: null });
    expect(table.changes({ owner: '2' })).toEqual({});
  });
});

describe('a table of shown members', () => {
  interface State {
    readonly id: string;
    readonly imageUrl: string | null;
    readonly endedAt: string | null;
  }
  const table = shownFields<State>()({
    is_open: [z.boolean(), ({ endedAt }) => endedAt === null],
    image_url: z.string().nullable(),
    id: z.string(),
  });

  it('reads properties by the names of the members, or with functions, in its order', () => {
    expect(JSON.stringify(table.resource({ id: '1', imageUrl: null, endedAt: null }))).toBe(
      '{"is_open":true,"image_url":null,"id":"1"}',
    );
    expect(z.object(table.shape).parse({ is_open: false, image_url: 'a', id: '2' })).toEqual({
      is_open: false,
      image_url: 'a',
      id: '2',
    });
  });

  it('refuses rows that do not fit the state, by their types', () => {
    // @ts-expect-error -- `imageUrl` may be null
    const nullable = shownFields<State>()({ image_url: z.string() });
    // @ts-expect-error -- there is no `name`
    const unknown = shownFields<State>()({ name: z.string() });
    // @ts-expect-error -- the function returns a text
    const other = shownFields<State>()({ is_open: [z.boolean(), ({ id }) => id] });
    expect([nullable, unknown, other].flatMap(({ shape }) => Object.keys(shape))).toHaveLength(3);
  });
});
