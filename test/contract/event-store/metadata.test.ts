import {
  BACKWARDS,
  END,
  NO_STREAM,
  START,
  StreamDeletedError,
  WrongExpectedVersionError,
  jsonEvent,
} from '@eventstore/db-client';
import { describe, expect, test } from 'vitest';
import { eventually } from '#test/support/eventually.ts';
import {
  appendPaths,
  collect,
  indexOf,
  numberedEvents,
  range,
  record,
  rejectionOf,
  uniqueName,
  useEventStore,
} from './support.ts';

describe('stream metadata', () => {
  const store = useEventStore();
  const indexes = async (stream: string) => (await collect(store.client.readStream(stream))).map(indexOf);
  const written = async (count: number) => {
    const stream = uniqueName('metadata');
    await store.client.appendToStream(stream, numberedEvents(count));
    return stream;
  };

  test('a stream without metadata has none', async () => {
    const stream = await written(1);
    expect((await store.client.getStreamMetadata(stream)).metadata).toBeUndefined();
  });

  test.each(appendPaths)('all known and custom keys are returned ($path)', async ({ options }) => {
    const stream = uniqueName('metadata');
    const metadata = {
      maxAge: 3600,
      cacheControl: 15,
      truncateBefore: 1,
      maxCount: 12,
      acl: {
        readRoles: ['$all'],
        writeRoles: ['$all'],
        deleteRoles: ['$all'],
        metaReadRoles: ['$all'],
        metaWriteRoles: ['$all'],
      },
      kitten: '😾',
      own: { nested: [1, null] },
    };
    await store.client.setStreamMetadata(stream, metadata, { ...options });
    expect((await store.client.getStreamMetadata(stream)).metadata).toEqual(metadata);
  });

  test('the newest metadata replaces the older', async () => {
    const stream = uniqueName('metadata');
    await store.client.setStreamMetadata(stream, { maxCount: 5, own: 1 });
    await store.client.setStreamMetadata(stream, { other: 2 });
    expect((await store.client.getStreamMetadata(stream)).metadata).toEqual({ other: 2 });
  });

  test('metadata can exist before its stream, and is a separate stream', async () => {
    const stream = uniqueName('metadata');
    await store.client.setStreamMetadata(stream, { maxCount: 5 });
    const { nextExpectedRevision } = await store.client.appendToStream(stream, numberedEvents(1), {
      expectedRevision: NO_STREAM,
    });
    expect(nextExpectedRevision).toBe(0n);
    const [event] = await collect(
      store.client.readStream(`$$${stream}`, { direction: BACKWARDS, fromRevision: END, maxCount: 1 }),
    );
    expect(event?.event).toMatchObject({ type: '$metadata', data: { $maxCount: 5 } });
  });

  test.each(appendPaths)('the revision of the metadata is checked ($path)', async ({ options }) => {
    const stream = uniqueName('metadata');
    const set = (own: number, expectedRevision: bigint | typeof NO_STREAM) =>
      store.client.setStreamMetadata(stream, { own }, { ...options, expectedRevision });
    expect((await set(1, NO_STREAM)).nextExpectedRevision).toBe(0n);
    expect((await set(2, 0n)).nextExpectedRevision).toBe(1n);
    const error = await rejectionOf(set(3, 0n));
    expect(error).toBeInstanceOf(WrongExpectedVersionError);
    expect(error).toMatchObject({ streamName: `$$${stream}`, expectedVersion: 0n, actualVersion: 1n });
    expect(await rejectionOf(set(4, NO_STREAM))).toBeInstanceOf(WrongExpectedVersionError);
    expect((await store.client.getStreamMetadata(stream)).metadata).toEqual({ own: 2 });
  });

  test('only the newest metadata of a stream can be read', async () => {
    const stream = uniqueName('metadata');
    for (const own of range(3)) await store.client.setStreamMetadata(stream, { own });
    const read = await collect(store.client.readStream(`$$${stream}`));
    expect(read.map(({ event }) => [event?.revision, event?.data])).toEqual([[2n, { own: 2 }]]);
  });

  test('metadata of a tombstoned stream cannot be written', async () => {
    const stream = await written(1);
    await store.client.tombstoneStream(stream);
    expect(await rejectionOf(store.client.setStreamMetadata(stream, { own: 1 }))).toBeInstanceOf(StreamDeletedError);
  });

  describe('maxCount', () => {
    test('keeps the newest events, with their revisions', async () => {
      const stream = await written(10);
      await store.client.setStreamMetadata(stream, { maxCount: 3 });
      const read = await collect(store.client.readStream(stream));
      expect(read.map(indexOf)).toEqual([7, 8, 9]);
      expect(read.map(({ event }) => event?.revision)).toEqual([7n, 8n, 9n]);
    });

    test('applies to later appends', async () => {
      const stream = uniqueName('metadata');
      await store.client.setStreamMetadata(stream, { maxCount: 2 });
      await store.client.appendToStream(stream, numberedEvents(20));
      expect(await indexes(stream)).toEqual([18, 19]);
      await store.client.appendToStream(stream, numberedEvents(1, 'more', 20));
      expect(await indexes(stream)).toEqual([19, 20]);
    });

    test('applies backwards, and from a truncated revision', async () => {
      const stream = await written(10);
      await store.client.setStreamMetadata(stream, { maxCount: 3 });
      const backwards = await collect(store.client.readStream(stream, { direction: BACKWARDS, fromRevision: END }));
      expect(backwards.map(indexOf)).toEqual([9, 8, 7]);
      const from = await collect(store.client.readStream(stream, { fromRevision: 2n }));
      expect(from.map(indexOf)).toEqual([7, 8, 9]);
    });

    test('can be increased again', async () => {
      const stream = await written(5);
      await store.client.setStreamMetadata(stream, { maxCount: 1 });
      await store.client.setStreamMetadata(stream, { maxCount: 4 });
      expect(await indexes(stream)).toEqual([1, 2, 3, 4]);
    });

    test('does not change the expected revision of an append', async () => {
      const stream = await written(10);
      await store.client.setStreamMetadata(stream, { maxCount: 1 });
      const result = await store.client.appendToStream(stream, numberedEvents(1), { expectedRevision: 9n });
      expect(result.nextExpectedRevision).toBe(10n);
    });

    test('applies to subscriptions', async () => {
      const stream = await written(10);
      await store.client.setStreamMetadata(stream, { maxCount: 2 });
      const recording = record(store.client.subscribeToStream(stream, { fromRevision: START }));
      try {
        await recording.delivered(2);
        await store.client.appendToStream(stream, numberedEvents(1, 'live', 10));
        expect((await recording.delivered(3)).map(indexOf)).toEqual([8, 9, 10]);
      } finally {
        await recording.stop();
      }
    });
  });

  describe('truncateBefore', () => {
    test('hides the events before that revision', async () => {
      const stream = await written(10);
      await store.client.setStreamMetadata(stream, { truncateBefore: 6 });
      expect(await indexes(stream)).toEqual([6, 7, 8, 9]);
      const backwards = await collect(store.client.readStream(stream, { direction: BACKWARDS, fromRevision: END }));
      expect(backwards.map(indexOf)).toEqual([9, 8, 7, 6]);
    });

    test('together with maxCount, the stricter applies', async () => {
      const stream = await written(10);
      await store.client.setStreamMetadata(stream, { truncateBefore: 8, maxCount: 5 });
      expect(await indexes(stream)).toEqual([8, 9]);
      await store.client.setStreamMetadata(stream, { truncateBefore: 2, maxCount: 5 });
      expect(await indexes(stream)).toEqual([5, 6, 7, 8, 9]);
    });
  });

  describe('maxAge', () => {
    test('hides events that are older, and shows newer ones', async () => {
      const stream = await written(3);
      await store.client.setStreamMetadata(stream, { maxAge: 1 });
      await eventually(async () => {
        const left = (await collect(store.client.readStream(stream))).length;
        if (left > 0) throw new Error(`${left} events are still there`);
      });
      await store.client.setStreamMetadata(stream, { maxAge: 3600 });
      expect(await indexes(stream)).toEqual([0, 1, 2]);
    });

    test('a stream whose events are all too old still exists', async () => {
      const stream = await written(2);
      await store.client.setStreamMetadata(stream, { maxAge: 1 });
      await eventually(async () => (await collect(store.client.readStream(stream))).length === 0);
      const result = await store.client.appendToStream(stream, numberedEvents(1), { expectedRevision: 1n });
      expect(result.nextExpectedRevision).toBe(2n);
    });
  });

  test('invalid metadata hides nothing', async () => {
    const stream = await written(3);
    await store.client.appendToStream(
      `$$${stream}`,
      jsonEvent({ type: '$metadata', data: { $maxCount: 'many', $tb: null } }),
    );
    expect(await indexes(stream)).toEqual([0, 1, 2]);
  });
});
