import {
  BACKWARDS,
  END,
  ErrorType,
  NO_STREAM,
  STREAM_EXISTS,
  StreamDeletedError,
  StreamNotFoundError,
  WrongExpectedVersionError,
} from '@eventstore/db-client';
import { describe, expect, test } from 'vitest';
import {
  appendPaths,
  collect,
  indexOf,
  numberedEvents,
  positionOf,
  rejectionOf,
  uniqueName,
  useEventStore,
} from './support.ts';

describe('soft delete', () => {
  const store = useEventStore();
  const written = async (count = 3) => {
    const stream = uniqueName('delete');
    const { nextExpectedRevision, position } = await store.client.appendToStream(stream, numberedEvents(count));
    return { stream, revision: nextExpectedRevision, position };
  };
  const read = (stream: string) => collect(store.client.readStream(stream));

  test('hides the events, and returns a later position', async () => {
    const { stream, position } = await written();
    const result = await store.client.deleteStream(stream);
    expect(positionOf(result).commit).toBeGreaterThan(position?.commit ?? 0n);
    expect(await rejectionOf(read(stream))).toBeInstanceOf(StreamNotFoundError);
  });

  test('with the exact current revision succeeds', async () => {
    const { stream, revision } = await written();
    await store.client.deleteStream(stream, { expectedRevision: revision });
    expect(await rejectionOf(read(stream))).toBeInstanceOf(StreamNotFoundError);
  });

  test('with another revision is refused, and the events stay', async () => {
    const { stream } = await written(3);
    const error = await rejectionOf(store.client.deleteStream(stream, { expectedRevision: 1n }));
    expect(error).toBeInstanceOf(WrongExpectedVersionError);
    expect(error).toMatchObject({ streamName: stream, expectedVersion: 1n, actualVersion: 2n });
    expect(await read(stream)).toHaveLength(3);
  });

  test('with no_stream is refused on a stream with events', async () => {
    const { stream } = await written();
    const error = await rejectionOf(store.client.deleteStream(stream, { expectedRevision: NO_STREAM }));
    expect(error).toBeInstanceOf(WrongExpectedVersionError);
    expect(error).toMatchObject({ streamName: stream });
  });

  test('of a stream that never existed is a wrong version', async () => {
    const stream = uniqueName('delete');
    const error = await rejectionOf(store.client.deleteStream(stream, { expectedRevision: NO_STREAM }));
    expect(error).toBeInstanceOf(WrongExpectedVersionError);
    expect(error).toMatchObject({ streamName: stream });
  });

  test('with no_stream succeeds on a stream that has metadata only', async () => {
    const stream = uniqueName('delete');
    await store.client.setStreamMetadata(stream, { cacheControl: 10 });
    expect(await store.client.deleteStream(stream, { expectedRevision: NO_STREAM })).toBeDefined();
  });

  test('is a truncation in the metadata', async () => {
    const { stream } = await written();
    await store.client.deleteStream(stream);
    const { metadata } = await store.client.getStreamMetadata(stream);
    expect(metadata?.truncateBefore).toBeGreaterThan(Number.MAX_SAFE_INTEGER);
  });

  describe.each(appendPaths)('$path to a soft-deleted stream', ({ options }) => {
    const deleted = async () => {
      const { stream, revision } = await written(3);
      await store.client.deleteStream(stream);
      return { stream, revision };
    };

    test.each([
      ['any', undefined],
      ['no_stream', NO_STREAM],
      ['the last revision', 2n],
    ] as const)('with %s revives it: revisions continue, old events stay hidden', async (_, expectedRevision) => {
      const { stream } = await deleted();
      const result = await store.client.appendToStream(stream, numberedEvents(2, 'revived', 3), {
        ...options,
        ...(expectedRevision === undefined ? {} : { expectedRevision }),
      });
      expect(result.nextExpectedRevision).toBe(4n);
      const events = await read(stream);
      expect(events.map(indexOf)).toEqual([3, 4]);
      expect(events.map(({ event }) => event?.revision)).toEqual([3n, 4n]);
      const backwards = await collect(store.client.readStream(stream, { direction: BACKWARDS, fromRevision: END }));
      expect(backwards.map(indexOf)).toEqual([4, 3]);
    });

    test('with stream_exists is refused as deleted', async () => {
      const { stream } = await deleted();
      const error = await rejectionOf(
        store.client.appendToStream(stream, numberedEvents(1), { ...options, expectedRevision: STREAM_EXISTS }),
      );
      expect(error).toBeInstanceOf(StreamDeletedError);
      expect(error).toMatchObject({ streamName: stream });
    });

    test('with another revision is refused', async () => {
      const { stream } = await deleted();
      const error = await rejectionOf(
        store.client.appendToStream(stream, numberedEvents(1), { ...options, expectedRevision: 7n }),
      );
      expect(error).toBeInstanceOf(WrongExpectedVersionError);
      expect(await rejectionOf(read(stream))).toBeInstanceOf(StreamNotFoundError);
    });
  });

  test('a revived stream can be deleted and revived again', async () => {
    const { stream } = await written(2);
    await store.client.deleteStream(stream);
    await store.client.appendToStream(stream, numberedEvents(1, 'again', 2));
    await store.client.deleteStream(stream);
    expect(await rejectionOf(read(stream))).toBeInstanceOf(StreamNotFoundError);
    await store.client.appendToStream(stream, numberedEvents(1, 'again', 3));
    expect((await read(stream)).map(indexOf)).toEqual([3]);
  });

  test('the metadata of a revived stream has its first revision', async () => {
    const { stream } = await written(3);
    await store.client.deleteStream(stream);
    await store.client.appendToStream(stream, numberedEvents(1));
    expect((await store.client.getStreamMetadata(stream)).metadata?.truncateBefore).toBe(3);
  });
});

describe('tombstone', () => {
  const store = useEventStore();
  const deleted = (stream: string) => ({ type: ErrorType.STREAM_DELETED, streamName: stream });
  const written = async () => {
    const stream = uniqueName('tombstone');
    await store.client.appendToStream(stream, numberedEvents(3));
    return stream;
  };
  const tombstoned = async () => {
    const stream = await written();
    await store.client.tombstoneStream(stream);
    return stream;
  };

  test('deletes a stream, and returns a position', async () => {
    const stream = await written();
    expect(positionOf(await store.client.tombstoneStream(stream)).commit).toBeGreaterThan(0n);
    expect(await rejectionOf(collect(store.client.readStream(stream)))).toMatchObject(deleted(stream));
  });

  test.each([
    ['the exact revision', 2n],
    ['stream_exists', STREAM_EXISTS],
  ] as const)('with %s succeeds', async (_, expectedRevision) => {
    const stream = await written();
    // The client serialises stream_exists here, though its type does not name it.
    await store.client.tombstoneStream(stream, { expectedRevision: expectedRevision as bigint });
    expect(await rejectionOf(collect(store.client.readStream(stream)))).toMatchObject(deleted(stream));
  });

  test.each([
    ['another revision', 1n],
    ['no_stream', NO_STREAM],
  ] as const)('with %s is refused on a stream with events, and they stay', async (_, expectedRevision) => {
    const stream = await written();
    const error = await rejectionOf(store.client.tombstoneStream(stream, { expectedRevision }));
    expect(error).toBeInstanceOf(WrongExpectedVersionError);
    expect(error).toMatchObject({ streamName: stream });
    expect(await collect(store.client.readStream(stream))).toHaveLength(3);
  });

  test('with no_stream reserves a name that was never used', async () => {
    const stream = uniqueName('tombstone');
    await store.client.tombstoneStream(stream, { expectedRevision: NO_STREAM });
    expect(await rejectionOf(collect(store.client.readStream(stream)))).toMatchObject(deleted(stream));
  });

  test('can follow a soft delete', async () => {
    const stream = await written();
    await store.client.deleteStream(stream);
    await store.client.tombstoneStream(stream);
    expect(await rejectionOf(collect(store.client.readStream(stream)))).toMatchObject(deleted(stream));
  });

  test.each(appendPaths)('$path to a tombstoned stream is always refused', async ({ options }) => {
    const stream = await tombstoned();
    expect(await rejectionOf(store.client.appendToStream(stream, numberedEvents(1), { ...options }))).toMatchObject(
      deleted(stream),
    );
    for (const expectedRevision of [NO_STREAM, STREAM_EXISTS, 2n] as const) {
      expect(
        await rejectionOf(store.client.appendToStream(stream, numberedEvents(1), { ...options, expectedRevision })),
      ).toMatchObject(deleted(stream));
    }
  });

  test('a tombstoned stream can be neither deleted nor tombstoned again', async () => {
    const stream = await tombstoned();
    expect(await rejectionOf(store.client.deleteStream(stream))).toMatchObject(deleted(stream));
    expect(await rejectionOf(store.client.tombstoneStream(stream))).toMatchObject(deleted(stream));
  });

  test('a subscription to a tombstoned stream fails as deleted', async () => {
    const stream = await tombstoned();
    expect(await rejectionOf(collect(store.client.subscribeToStream(stream)))).toMatchObject(deleted(stream));
  });

  test('other streams are not changed', async () => {
    const stream = await tombstoned();
    const { nextExpectedRevision } = await store.client.appendToStream(`${stream}-2`, numberedEvents(1));
    expect(nextExpectedRevision).toBe(0n);
  });
});
