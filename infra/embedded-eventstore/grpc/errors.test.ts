import { expect, test } from 'vitest';
import { LogWriteError } from '../log/event-log.ts';
import { streamDeleted, toCallError, wrongExpectedVersion } from './errors.ts';

test('characters that a trailer cannot contain are percent-encoded', () => {
  expect(streamDeleted('kanal-ü\n😀').metadata.getMap()).toMatchObject({
    exception: 'stream-deleted',
    'stream-name': 'kanal-%C3%BC%0A%F0%9F%98%80',
  });
});

test.each([
  ['any', '-2'],
  ['no_stream', '-1'],
  ['stream_exists', '-4'],
  [7, '7'],
] as const)('the expected version %s travels as %s', (expected, text) => {
  expect(wrongExpectedVersion('s', expected, 3).metadata.getMap()).toMatchObject({
    'expected-version': text,
    'actual-version': '3',
  });
});

test('a stream without events has no actual version', () => {
  expect(wrongExpectedVersion('s', 1, undefined).metadata.getMap()).not.toHaveProperty('actual-version');
});

test('a write that failed on disk is UNAVAILABLE with the reason', () => {
  const error = toCallError(new LogWriteError('No space left on device'));
  expect(error.toStatus()).toMatchObject({
    code: 14,
    details: 'The event store could not write to disk: No space left on device',
  });
});
