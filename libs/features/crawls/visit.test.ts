import { expect, it } from 'vitest';

import { typeOf } from './visit.ts';

it.each([
  ['text/html; charset=x', '%PDF-1.4', 'application/pdf'],
  ['text/html', 'A text about %PDF-1.4', 'text/html'],
  [null, '<p>', 'text/html'],
  [null, '\n%PDF-1.4', 'application/pdf'],
  ['application/x-pdf', '%PDF-1.4', 'application/pdf'],
  ['application/octet-stream', 'junk %PDF-1.4\n1 0 obj', 'application/pdf'],
  ['binary/octet-stream', 'Notes in a text', 'text/plain'],
  ['application/octet-stream', '<!DOCTYPE html><p>', 'text/html'],
  ['application/octet-stream', 'a\0b', 'application/octet-stream'],
  ['image/png', 'x', 'image/png'],
])('the type of a response of %j with %j is %s', (contentType, body, type) => {
  expect(typeOf(contentType, Buffer.from(body))).toBe(type);
});
