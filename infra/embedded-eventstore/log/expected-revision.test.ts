import { describe, expect, test } from 'vitest';
import { decideAppend, type WrittenEvents } from './expected-revision.ts';
import type { ExpectedRevision } from './event-log.ts';
import { newStream, parseTruncation, type StreamState } from './stream-state.ts';

const NOTHING: WrittenEvents = { at: () => undefined, recent: () => undefined, hasMetadata: false };

/** Events a, b, c at revisions 0, 1, 2, with positions 10, 11, 12. */
const abc = (remembered: readonly string[] = []): WrittenEvents => ({
  hasMetadata: false,
  at: (revision) => {
    const id = ['a', 'b', 'c'][revision];
    return id === undefined ? undefined : { id, position: 10 + revision };
  },
  recent: (id) =>
    remembered.includes(id) ? { revision: 'abc'.indexOf(id), position: 10 + 'abc'.indexOf(id) } : undefined,
});

const stream = (change: Partial<StreamState> = {}): StreamState => ({ ...newStream(0), lastRevision: 2, ...change });
const softDeleted = stream({ truncation: parseTruncation(Buffer.from('{"$tb":9223372036854775807}')) });

const WRITE = { kind: 'write', revive: false };
const WRONG = { kind: 'wrong-revision' };
const repeated = (revision: number) => ({ kind: 'repeated', event: { revision, position: 10 + revision } });

describe('an append with an exact revision', () => {
  test.each<[string, ExpectedRevision, string[], object]>([
    ['the last revision is written', 2, ['d'], WRITE],
    ['the last revision is written even when the ids were used before', 2, ['a', 'b'], WRITE],
    ['a higher revision is wrong', 3, ['d'], WRONG],
    ['a lower revision with other events is wrong', 1, ['x'], WRONG],
    ['a lower revision with the very same event is a repeat', 1, ['c'], repeated(2)],
    [
      'a lower revision with the very same events is a repeat, with the revision of the last',
      0,
      ['b', 'c'],
      repeated(2),
    ],
    ['a repeat of events in the middle keeps their revision', 0, ['b'], repeated(1)],
    ['a repeat that goes on with a new event is wrong', 1, ['c', 'd'], WRONG],
    ['a repeat that deviates in the middle is wrong', 0, ['b', 'x'], WRONG],
    ['the same events in another order are wrong', 0, ['c', 'b'], WRONG],
    ['no events at a lower revision are wrong', 1, [], WRONG],
    ['no events at the last revision are written', 2, [], WRITE],
  ])('at %s', (_name, expected, ids, decision) => {
    expect(decideAppend(stream(), expected, ids, abc())).toEqual(decision);
  });
});

describe('an append with no_stream', () => {
  test('is written when the stream does not exist', () => {
    expect(decideAppend(undefined, 'no_stream', ['a'], NOTHING)).toEqual(WRITE);
  });
  test('is a repeat when the stream begins with the same events', () => {
    expect(decideAppend(stream(), 'no_stream', ['a', 'b'], abc())).toEqual(repeated(1));
  });
  test('is wrong when the stream begins with other events', () => {
    expect(decideAppend(stream(), 'no_stream', ['x'], abc())).toEqual(WRONG);
  });
  test('revives a soft-deleted stream', () => {
    expect(decideAppend(softDeleted, 'no_stream', ['x'], abc())).toEqual({ kind: 'write', revive: true });
  });
});

describe('an append with any or stream_exists', () => {
  test.each(['any', 'stream_exists'] as const)('%s is written when the first id is new', (expected) => {
    expect(decideAppend(stream(), expected, ['x', 'a'], abc(['a']))).toEqual(WRITE);
  });
  test.each(['any', 'stream_exists'] as const)('%s is a repeat when all ids are remembered', (expected) => {
    expect(decideAppend(stream(), expected, ['a', 'b'], abc(['a', 'b']))).toEqual(repeated(1));
  });
  test.each(['any', 'stream_exists'] as const)('%s is wrong when only the first ids are remembered', (expected) => {
    expect(decideAppend(stream(), expected, ['a', 'x'], abc(['a']))).toEqual(WRONG);
  });
  test('ids in the log that are no longer remembered are written again', () => {
    expect(decideAppend(stream(), 'any', ['a'], abc())).toEqual(WRITE);
  });
  test('any begins a stream, stream_exists does not', () => {
    expect(decideAppend(undefined, 'any', ['a'], NOTHING)).toEqual(WRITE);
    expect(decideAppend(undefined, 'stream_exists', ['a'], NOTHING)).toEqual(WRONG);
  });
  test('a stream that has only metadata exists', () => {
    const written = { ...NOTHING, hasMetadata: true };
    expect(decideAppend(newStream(0), 'stream_exists', ['a'], written)).toEqual(WRITE);
  });
  test('any revives a soft-deleted stream, for stream_exists it is deleted', () => {
    expect(decideAppend(softDeleted, 'any', ['x'], abc())).toEqual({ kind: 'write', revive: true });
    expect(decideAppend(softDeleted, 'stream_exists', ['x'], abc())).toEqual({ kind: 'stream-deleted' });
  });
});

test.each<ExpectedRevision>(['any', 'no_stream', 'stream_exists', 2, 99])(
  'a tombstoned stream takes nothing, expected %s',
  (expected) => {
    expect(decideAppend(stream({ tombstoned: true }), expected, ['x'], abc())).toEqual({ kind: 'stream-deleted' });
  },
);
