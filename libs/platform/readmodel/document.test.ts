import { describe, expect, it } from 'vitest';

import { streamRevision } from '#libs/kernel/event.ts';

import { decodeDocument, encodeDocument } from './document.ts';

describe('a stored document', () => {
  it.each([0, 7, 10, 4_294_967_296])('gives back its revision %i and its bytes', (revision) => {
    const stored = Buffer.from(encodeDocument(streamRevision(revision), '{"name":"Über\\nuns","n":[1]}'));
    const document = decodeDocument(stored);
    expect(document.revision).toBe(revision);
    expect(document.json.toString()).toBe('{"name":"Über\\nuns","n":[1]}');
  });

  it.each(['', '12', '{"name":"no revision"}', 'x\n{}', '-1\n{}', '99999999999999999999\n{}'])(
    'is refused when it does not begin with a revision: %j',
    (stored) => {
      expect(() => decodeDocument(Buffer.from(stored))).toThrow();
    },
  );
});
