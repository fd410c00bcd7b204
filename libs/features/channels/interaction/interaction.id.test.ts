import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { sequenceOf, streamRevision } from '#libs/kernel/event.ts';

import { interactionId, parseInteractionId } from './interaction.id.ts';

const refs = fc.record({
  channelId: fc.uuid(),
  sequence: fc.integer({ min: 0, max: 2 ** 48 - 2 }).map((revision) => sequenceOf(streamRevision(revision))),
});

describe('the id of an interaction', () => {
  it('encodes one interaction, and no other text encodes the same one', () => {
    fc.assert(
      fc.property(refs, fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 2 }), (ref, more) => {
        const id = interactionId(ref);
        expect(id).toMatch(/^[A-Za-z0-9_-]{30}$/);
        expect(parseInteractionId(id)).toEqual(ref);
        expect(parseInteractionId(id + more)).toBeNull();
      }),
    );
  });

  it('is not parsed from other texts', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.base64String({ minLength: 28, maxLength: 32 })), (junk) => {
        const ref = parseInteractionId(junk);
        expect(ref === null || interactionId(ref) === junk).toBe(true);
      }),
    );
    for (const junk of ['', 'A'.repeat(30), '0198c0de-0000-7000-8000-000000000000']) {
      expect(parseInteractionId(junk)).toBeNull();
    }
  });

  it('is not parsed from a text with other trailing bits', () => {
    const id = interactionId({
      channelId: '0198c0de-0000-7000-8000-000000000000',
      sequence: sequenceOf(streamRevision(0)),
    });
    expect(id.endsWith('AQ')).toBe(true);
    for (const last of ['R', 'S', 'T']) expect(parseInteractionId(id.slice(0, -1) + last)).toBeNull();
  });

  it('requires a UUID as the channel id', () => {
    expect(() => interactionId({ channelId: 'no-uuid', sequence: sequenceOf(streamRevision(0)) })).toThrow(
      'not the id of a channel: no-uuid',
    );
  });
});
