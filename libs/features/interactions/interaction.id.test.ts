import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { sequenceOf, streamRevision } from '#libs/kernel/event.ts';

import { interactionId, placeOfInteraction } from './interaction.id.ts';

const places = fc.record({
  channelId: fc.uuid(),
  sequence: fc.integer({ min: 0, max: 2 ** 48 - 2 }).map((revision) => sequenceOf(streamRevision(revision))),
});

describe('the id of an interaction', () => {
  it('says where it stands, and nothing else names the same place', () => {
    fc.assert(
      fc.property(places, fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 2 }), (place, more) => {
        const id = interactionId(place);
        expect(id).toMatch(/^[A-Za-z0-9_-]{30}$/);
        expect(placeOfInteraction(id)).toEqual(place);
        expect(placeOfInteraction(id + more)).toBeNull();
      }),
    );
  });

  it('is read from nothing that cannot be one', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.base64String({ minLength: 28, maxLength: 32 })), (junk) => {
        const place = placeOfInteraction(junk);
        expect(place === null || interactionId(place) === junk).toBe(true);
      }),
    );
    for (const junk of ['', 'A'.repeat(30), '0198c0de-0000-7000-8000-000000000000']) {
      expect(placeOfInteraction(junk)).toBeNull();
    }
  });

  it('is not read from a text whose last bits say nothing', () => {
    const id = interactionId({
      channelId: '0198c0de-0000-7000-8000-000000000000',
      sequence: sequenceOf(streamRevision(0)),
    });
    expect(id.endsWith('AQ')).toBe(true);
    for (const last of ['R', 'S', 'T']) expect(placeOfInteraction(id.slice(0, -1) + last)).toBeNull();
  });

  it('is made for a channel that has one only', () => {
    expect(() => interactionId({ channelId: 'no-uuid', sequence: sequenceOf(streamRevision(0)) })).toThrow(
      'not the id of a channel: no-uuid',
    );
  });
});
