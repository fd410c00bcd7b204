import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { sequenceOf, streamRevision } from '#libs/kernel/event.ts';

import { LiveFrame } from './live-frame.ts';

const sequence = sequenceOf(streamRevision(6));
/** Of `str.splitlines` in Python, by which `httpx` and readers built on it divide an event stream. */
const LINE_BREAK = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/;

describe('a frame in an event stream', () => {
  it('is one line of data, also for readers to whom other characters than the standard has end lines', () => {
    const unit = fc.oneof(
      fc.constantFrom('\u0085', '\u2028', '\u2029', '\v', '\f', '\n', '\u00c2', '\u2027', '😀'),
      fc.string({ maxLength: 3, unit: 'binary' }),
    );
    fc.assert(
      fc.property(fc.string({ unit }), (text) => {
        const json = JSON.stringify({ frame: 'event', seq: 7, type: 'x', data: { text } });
        const encoded = new LiveFrame(sequence, 0, json).encodedFor('event-stream', 0)?.toString() ?? '';
        const [id, data = '', ...rest] = encoded.split(LINE_BREAK);
        expect([id, ...rest]).toEqual(['id: 7', '', '']);
        expect(JSON.parse(data.replace('data: ', ''))).toEqual(JSON.parse(json));
      }),
    );
  });
});
