import { describe, expect, it } from 'vitest';
import { z } from 'zod';

import { field, fields, group, namedField, shown } from './fields.ts';

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
