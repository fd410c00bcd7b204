import { describe, expect, it } from 'vitest';
import { z } from 'zod';

import { streamRevision } from '#libs/kernel/event.ts';
import { logMetadata } from '#test/support/log-events.ts';

import { composeCodecs } from './compose-codecs.ts';
import { defineEvents } from './event-codec.ts';
import type { EventCodec, EventOf } from './event-codec.ts';
import type { StoredEvent } from './event-store.ts';

const names = defineEvents({ 'Renamed.v1': z.object({ name: z.string() }) });
const counts = defineEvents({ 'Counted.v1': z.object({ count: z.int() }) });
type AnyEvent = EventOf<typeof names> | EventOf<typeof counts>;
// Each takes only some of the events, and is asked for no others.
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

describe('the codec of a stream in which several features write', () => {
  it('knows the types of all of them', () => {
    expect([...codec().types].sort()).toEqual(['Counted.v1', 'Renamed.v1']);
  });

  it('reads and writes each event as its own feature does', () => {
    const { encode, decode } = codec();
    expect(decode(stored('Renamed.v1', { name: 'a', more: 1 }))).toMatchObject({ data: { name: 'a' } });
    expect(decode(stored('Counted.v1', { count: 2 }))).toMatchObject({ type: 'Counted.v1', data: { count: 2 } });
    expect(encode({ type: 'Counted.v1', data: { count: 2 } })).toEqual({ count: 2 });
    expect(() => decode(stored('Counted.v1', { name: 'a' }))).toThrow(/count/);
    expect(() => encode({ type: 'Renamed.v1', data: { count: 2 } as never })).toThrow(/name/);
  });

  it('skips what none of them knows, and counts it once', () => {
    const { decode, skipped } = codec();
    const before = skipped.get('Unknown.v9') ?? 0;
    expect(decode(stored('Unknown.v9', {}))).toBeNull();
    expect(skipped.get('Unknown.v9')).toBe(before + 1);
  });

  it('is refused where two of them declare the same type, and where there is none', () => {
    expect(() => composeCodecs([names, names])).toThrow('two features of one stream declare Renamed.v1');
    expect(() => composeCodecs([])).toThrow('at least one');
  });
});
