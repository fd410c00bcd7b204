import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { sequenceOf, streamRevision } from '#libs/kernel/event.ts';

import {
  decodeLiveMessage,
  encodeEvent,
  encodeHead,
  encodeUserValue,
  encodeValue,
  joinLines,
  type LiveItem,
} from './frames.ts';

const sequence = fc.integer({ min: 1, max: 2 ** 40 }).map((one) => sequenceOf(streamRevision(one - 1)));
const flags = fc.integer({ min: 0, max: 15 });
const json = fc.jsonValue().map((value) => JSON.stringify(value));
const key = fc.stringMatching(/^[\w:üß🎈-]+$/u);

const item: fc.Arbitrary<LiveItem> = fc.oneof(
  fc.record({ kind: fc.constant('event' as const), sequence, flags, json: json.map((text) => Buffer.from(text)) }),
  fc.record({ kind: fc.constant('head' as const), sequence }),
  fc.record({ kind: fc.constant('value' as const), flags, key, json: json.map((text) => Buffer.from(text)) }),
  fc.record({
    kind: fc.constant('user value' as const),
    userId: fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/),
    flags,
    json: json.map((text) => Buffer.from(text)),
  }),
);

function encode(one: LiveItem): string {
  switch (one.kind) {
    case 'event':
      return encodeEvent({ ...one, json: one.json.toString() });
    case 'head':
      return encodeHead(one.sequence);
    case 'value':
      return encodeValue({ ...one, json: one.json.toString() });
    case 'user value':
      return encodeUserValue(one.userId, { ...one, json: one.json.toString() });
  }
}

describe('a message on a topic', () => {
  it('decodes to the encoded items, in order', () => {
    fc.assert(
      fc.property(fc.array(item), (items) => {
        expect(decodeLiveMessage(Buffer.from(joinLines(items.map(encode))))).toEqual(items);
      }),
    );
  });

  it('has one line of text for an event, a head and a value', () => {
    const at = sequenceOf(streamRevision(6));
    expect(encodeEvent({ sequence: at, flags: 3, json: '{"a":"b c"}' })).toBe('E 7 3 {"a":"b c"}');
    expect(encodeHead(at)).toBe('H 7');
    expect(encodeValue({ flags: 4, key: 'typing:u', json: '{}' })).toBe('X 4 typing:u {}');
  });

  it.each(['', 'a b', 'a\nb'])('refuses a key that would break its line: %j', (wrong) => {
    expect(() => encodeValue({ flags: 4, key: wrong, json: '{}' })).toThrow(TypeError);
    expect(() => encodeUserValue(wrong, { flags: 4, json: '{}' })).toThrow(TypeError);
  });

  it.each([
    '',
    'E',
    'E 7',
    'E 7 3',
    'E x 3 {}',
    'E 7 -1 {}',
    'E 99999999999999999 0 {}',
    'H',
    'H 1e3',
    'X 4 k',
    'X 4  {}',
    'Y 1 2 3',
    'Hello',
  ])('is decoded without an invalid line: %j', (line) => {
    const around = joinLines(['H 1', line, 'H 2']);
    expect(decodeLiveMessage(Buffer.from(around))).toEqual([
      { kind: 'head', sequence: 1 },
      { kind: 'head', sequence: 2 },
    ]);
  });

  it('shares its memory with the JSON of its items', () => {
    const message = Buffer.from('E 1 0 {"a":1}');
    const [event] = decodeLiveMessage(message);
    expect(event?.kind === 'event' && event.json.buffer).toBe(message.buffer);
  });
});
