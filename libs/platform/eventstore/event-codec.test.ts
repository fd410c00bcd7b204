import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { type EventMetadata, streamRevision } from '#libs/kernel/event.ts';
import { CorruptEventError } from '#libs/kernel/faults.ts';
import { defineEvents, encodeMetadata, type EventOf, upcast } from './event-codec.ts';
import type { StoredEvent } from './event-store.ts';

const metadata: EventMetadata = {
  at: '2026-01-31T12:00:00.000Z',
  organizationId: 'o1',
  actor: { type: 'user', id: 'u1' },
  commandId: 'c1',
  $correlationId: 'c1',
  $causationId: 'c1',
};

const codec = () =>
  defineEvents(
    {
      'ChannelCreated.v1': z.object({ name: z.string(), tags: z.array(z.string()).optional() }),
      'ChannelRenamed.v3': z.object({ name: z.string(), reason: z.string() }),
    },
    {
      upcasters: {
        'ChannelRenamed.v1': upcast(z.object({ title: z.string() }), ({ title }) => ({
          type: 'ChannelRenamed.v2',
          data: { name: title },
        })),
        'ChannelRenamed.v2': upcast(z.object({ name: z.string() }), ({ name }) => ({
          type: 'ChannelRenamed.v3',
          data: { name, reason: 'unknown' },
        })),
      },
    },
  );

const stored = (over: Partial<StoredEvent>): StoredEvent => ({
  stream: 'channel-1',
  revision: streamRevision(4),
  position: null,
  id: 'e1',
  type: 'ChannelCreated.v1',
  data: { name: 'general' },
  metadata,
  createdMs: 0,
  ...over,
});

test('events are inferred as a union that their type discriminates', () => {
  type E = EventOf<ReturnType<typeof codec>>;
  expect([...codec().types].sort()).toEqual([
    'ChannelCreated.v1',
    'ChannelRenamed.v1',
    'ChannelRenamed.v2',
    'ChannelRenamed.v3',
  ]);
  expectTypeOf<E['type']>().toEqualTypeOf<'ChannelCreated.v1' | 'ChannelRenamed.v3'>();
  expectTypeOf<Extract<E, { type: 'ChannelRenamed.v3' }>['data']>().toEqualTypeOf<{ name: string; reason: string }>();
});

test('no event holds a lone surrogate, wherever its texts come from', () => {
  const said = { name: 'half \ud83d', tags: ['\ude00', 'whole 😀'] };
  const data = codec().encode({ type: 'ChannelCreated.v1', data: said });
  expect(data).toEqual({ name: 'half \ufffd', tags: ['\ufffd', 'whole 😀'] });
});

test('an encoded event decodes to itself with its revision', () => {
  const data = codec().encode({ type: 'ChannelCreated.v1', data: { name: 'general', tags: ['a'] } });
  expect(codec().decode(stored({ data }))).toEqual({
    type: 'ChannelCreated.v1',
    data: { name: 'general', tags: ['a'] },
    id: 'e1',
    revision: 4,
    metadata,
  });
});

test('keys that the schema lacks are not stored', () => {
  const wide = { name: 'general', secret: 1 };
  expect(codec().encode({ type: 'ChannelCreated.v1', data: wide })).toEqual({ name: 'general' });
});

test('encoding an event that does not match its schema throws TypeError', () => {
  // @ts-expect-error the type checker refuses it, too
  expect(() => codec().encode({ type: 'ChannelCreated.v1', data: { name: 7 } })).toThrow(
    /^ChannelCreated\.v1 does not match its schema: name: /,
  );
  // @ts-expect-error the type checker refuses it, too
  expect(() => codec().encode({ type: 'ChannelClosed.v1', data: {} })).toThrow(TypeError);
});

test('old versions are upcast step by step to the newest one', () => {
  expect(codec().decode(stored({ type: 'ChannelRenamed.v1', data: { title: 'news' } }))).toMatchObject({
    type: 'ChannelRenamed.v3',
    data: { name: 'news', reason: 'unknown' },
    revision: 4,
  });
});

test('an unknown type is skipped and counted', () => {
  const counting = codec();
  expect(counting.decode(stored({ type: 'FromTheFuture.v1' }))).toBeNull();
  expect(counting.decode(stored({ type: 'FromTheFuture.v1', data: null, metadata: null }))).toBeNull();
  expect(counting.decode(stored({ type: 'toString' }))).toBeNull();
  expect([...counting.skipped]).toEqual([
    ['FromTheFuture.v1', 2],
    ['toString', 1],
  ]);
});

test.each([
  ['data of another shape', { data: { title: 'x' } }, /ChannelCreated\.v1 channel-1@4 \(e1\): name: /],
  ['data that is no object', { data: 'name' }, /channel-1@4/],
  ['old data that the frozen schema refuses', { type: 'ChannelRenamed.v1', data: {} }, /upcasting ChannelRenamed\.v1/],
  ['missing metadata', { metadata: undefined }, /metadata: \(root\)/],
  ['metadata without an organization', { metadata: { ...metadata, organizationId: undefined } }, /organizationId/],
])('a known type with %s is corrupt, and the error says where', (_, over, message) => {
  const decode = () => codec().decode(stored(over));
  expect(decode).toThrow(CorruptEventError);
  expect(decode).toThrow(message);
});

test('unknown keys of the metadata are allowed and dropped', () => {
  expect(codec().decode(stored({ metadata: { ...metadata, later: 1 } }))?.metadata).toEqual(metadata);
});

test('metadata is checked before it is written', () => {
  expect(encodeMetadata(metadata)).toEqual(metadata);
  expect(() => encodeMetadata({ ...metadata, at: 'yesterday' })).toThrow(/metadata is invalid: at/);
});

test('a codec with both a schema and an upcaster for one type is refused', () => {
  expect(() =>
    defineEvents(
      { 'A.v1': z.object({}) },
      { upcasters: { 'A.v1': upcast(z.object({}), () => ({ type: 'A.v2', data: {} })) } },
    ),
  ).toThrow('A.v1 has a schema and an upcaster');
});

test('upcasters that lead to an unknown type or form a cycle are reported', () => {
  const to = (type: `${string}.v${number}`) => upcast(z.object({}), (data) => ({ type, data }));
  const broken = defineEvents({}, { upcasters: { 'A.v1': to('A.v2'), 'B.v1': to('B.v2'), 'B.v2': to('B.v1') } });
  expect(() => broken.decode(stored({ type: 'A.v1', data: {} }))).toThrow('which no schema declares');
  expect(() => broken.decode(stored({ type: 'B.v1', data: {} }))).toThrow('form a cycle');
});
