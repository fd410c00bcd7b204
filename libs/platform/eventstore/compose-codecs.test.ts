import { describe, expect, it } from 'vitest';
import { z } from 'zod';

import { streamRevision } from '#libs/kernel/event.ts';
import { logMetadata } from '#test/support/log-events.ts';

import { composeCodecs, defineEvents, type EventCodec, type EventOf } from './event-codec.ts';
import type { StoredEvent } from './event-store.ts';

const names = defineEvents({ 'Renamed.v1': z.object({ name: z.string() }) });
const counts = defineEvents({ 'Counted.v1': z.object({ count: z.int() }) });
type AnyEvent = EventOf<typeof names> | EventOf<typeof counts>;
// Each codec handles only its own events.
const codec = () => composeCodecs([names, counts] as unknown as readonly EventCodec<AnyEvent>[]);

const stored = (type: string, data: unknown): StoredEvent => ({
  stream: 'thing-1',
  revision: streamRevision(3),
  position: null,
  id: 'event-1',
  createdMs: 0,
  type,
  data,
  metadata: logMetadata('command-1'),
});

describe('the codec of a stream that several features write to', () => {
  it('knows the types of all of them', () => {
    expect([...codec().types].sort()).toEqual(['Counted.v1', 'Renamed.v1']);
  });

  it('encodes and decodes each event with the codec of its feature', () => {
    const { encode, decode } = codec();
    expect(decode(stored('Renamed.v1', { name: 'a', more: 1 }))).toMatchObject({ data: { name: 'a' } });
    expect(decode(stored('Counted.v1', { count: 2 }))).toMatchObject({ type: 'Counted.v1', data: { count: 2 } });
    expect(encode({ type: 'Counted.v1', data: { count: 2 } })).toEqual({ count: 2 });
    expect(() => decode(stored('Counted.v1', { name: 'a' }))).toThrow(/count/);
    expect(() => encode({ type: 'Renamed.v1', data: { count: 2 } as never })).toThrow(/name/);
  });

  it('skips unknown types, and counts them once', () => {
    const { decode, skipped } = codec();
    const before = skipped.get('Unknown.v9') ?? 0;
    expect(decode(stored('Unknown.v9', {}))).toBeNull();
    expect(skipped.get('Unknown.v9')).toBe(before + 1);
  });

  it('cannot be composed of codecs with the same type, nor of none', () => {
    expect(() => composeCodecs([names, names])).toThrow('two features of one stream declare Renamed.v1');
    expect(() => composeCodecs([])).toThrow('at least one');
  });
});
