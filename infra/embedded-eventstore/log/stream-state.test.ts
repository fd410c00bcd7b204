import { describe, expect, test } from 'vitest';
import {
  firstReadable,
  isSoftDeleted,
  metadataFrom,
  newStream,
  oldestReadable,
  parseTruncation,
  type StreamState,
} from './stream-state.ts';

const withMetadata = (metadata: string, lastRevision = 9): StreamState => ({
  ...newStream(0),
  lastRevision,
  truncation: parseTruncation(Buffer.from(metadata)),
});

describe('the first revision that can be read', () => {
  test.each([
    ['without metadata is 0', '{}', 0],
    ['with $maxCount is that many from the end', '{"$maxCount":3}', 7],
    ['with a $maxCount above the length is 0', '{"$maxCount":30}', 0],
    ['with $tb is that revision', '{"$tb":4}', 4],
    ['is the higher one of $tb and $maxCount', '{"$tb":4,"$maxCount":3}', 7],
    ['is the higher one of $maxCount and $tb', '{"$tb":8,"$maxCount":3}', 8],
    ['may lie behind the end', '{"$tb":12}', 12],
    ['is none for a soft-deleted stream', '{"$tb":9223372036854775807}', Infinity],
  ])('%s', (_name, metadata, first) => {
    expect(firstReadable('stream', withMetadata(metadata))).toBe(first);
  });

  test('of a metadata stream is its last one, regardless of its own metadata', () => {
    expect(firstReadable('$$stream', withMetadata('{"$maxCount":5}'))).toBe(9);
  });
});

describe('metadata', () => {
  test.each(['', 'not json', '[1]', 'null', '"text"', '{"$tb":"4","$maxCount":-1,"$maxAge":1.5}', '{"$maxCount":0}'])(
    'that makes no sense is ignored: %s',
    (metadata) => {
      expect(firstReadable('stream', withMetadata(metadata))).toBe(0);
      expect(oldestReadable('stream', withMetadata(metadata), 1000)).toBeUndefined();
    },
  );

  test('$maxAge counts seconds back from now', () => {
    expect(oldestReadable('stream', withMetadata('{"$maxAge":60}'), 100_000)).toBe(40_000);
  });

  test('of a revived stream changes only $tb', () => {
    const revived = metadataFrom(Buffer.from('{"$tb":9223372036854775807,"$maxCount":5,"own":"value"}'), 10);
    expect(JSON.parse(Buffer.from(revived).toString())).toEqual({ $tb: 10, $maxCount: 5, own: 'value' });
    expect(isSoftDeleted(withMetadata(Buffer.from(revived).toString()))).toBe(false);
  });
});
