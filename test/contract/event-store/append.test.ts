import {
  ANY,
  NO_STREAM,
  STREAM_EXISTS,
  WrongExpectedVersionError,
  type AppendExpectedRevision,
} from '@eventstore/db-client';
import { describe, expect, test } from 'vitest';
import { connectClient } from '#libs/platform/eventstore/client/connect-client.ts';
import {
  appendPaths,
  collect,
  indexOf,
  numberedEvents,
  range,
  rejectionOf,
  unaryPath,
  uniqueName,
  useEventStore,
} from './support.ts';

describe.each(appendPaths)('$path', ({ options }) => {
  const store = useEventStore();
  const append = (stream: string, count: number, expectedRevision: AppendExpectedRevision) =>
    store.client.appendToStream(stream, numberedEvents(count), { expectedRevision, ...options });

  test('events get contiguous revisions from 0, in the order in which they were given', async () => {
    const stream = uniqueName('append');
    const first = await append(stream, 3, ANY);
    const second = await append(stream, 2, ANY);
    expect(first).toMatchObject({ success: true, nextExpectedRevision: 2n });
    expect(second).toMatchObject({ success: true, nextExpectedRevision: 4n });
    const read = await collect(store.client.readStream(stream));
    expect(read.map(({ event }) => event?.revision)).toEqual([0n, 1n, 2n, 3n, 4n]);
    expect(read.map(indexOf)).toEqual([0, 1, 2, 0, 1]);
  });

  test('the result has the position of the last event', async () => {
    const stream = uniqueName('append');
    const result = await append(stream, 3, ANY);
    const last = (await collect(store.client.readStream(stream))).at(-1);
    expect(result.position).toBeDefined();
    expect(result.position).toEqual(last?.event?.position);
  });

  test('later appends have greater positions', async () => {
    const [one, other] = [uniqueName('append'), uniqueName('append')];
    const results = [await append(one, 1, ANY), await append(other, 1, ANY), await append(one, 1, ANY)];
    const commits = results.map(({ position }) => position?.commit ?? -1n);
    expect(commits[0]).toBeGreaterThan(-1n);
    expect(commits[1]).toBeGreaterThan(commits[0] ?? 0n);
    expect(commits[2]).toBeGreaterThan(commits[1] ?? 0n);
  });

  test('no_stream succeeds on a new stream', async () => {
    expect((await append(uniqueName('append'), 2, NO_STREAM)).nextExpectedRevision).toBe(1n);
  });

  test('no_stream fails on an existing stream and names both versions', async () => {
    const stream = uniqueName('append');
    await append(stream, 2, ANY);
    const error = await rejectionOf(append(stream, 1, NO_STREAM));
    expect(error).toBeInstanceOf(WrongExpectedVersionError);
    expect(error).toMatchObject({ streamName: stream, expectedVersion: NO_STREAM, actualVersion: 1n });
  });

  test('stream_exists succeeds on an existing stream', async () => {
    const stream = uniqueName('append');
    await append(stream, 1, ANY);
    expect((await append(stream, 1, STREAM_EXISTS)).nextExpectedRevision).toBe(1n);
  });

  test('stream_exists fails on a missing stream', async () => {
    const stream = uniqueName('append');
    const error = await rejectionOf(append(stream, 1, STREAM_EXISTS));
    expect(error).toBeInstanceOf(WrongExpectedVersionError);
    expect(error).toMatchObject({ streamName: stream, expectedVersion: STREAM_EXISTS, actualVersion: NO_STREAM });
  });

  test('the exact current revision succeeds', async () => {
    const stream = uniqueName('append');
    const { nextExpectedRevision } = await append(stream, 3, NO_STREAM);
    expect((await append(stream, 1, nextExpectedRevision)).nextExpectedRevision).toBe(3n);
  });

  test('a revision behind the current one fails and names both versions', async () => {
    const stream = uniqueName('append');
    await append(stream, 3, NO_STREAM);
    const error = await rejectionOf(append(stream, 1, 0n));
    expect(error).toBeInstanceOf(WrongExpectedVersionError);
    expect(error).toMatchObject({ streamName: stream, expectedVersion: 0n, actualVersion: 2n });
  });

  test('a revision ahead of the current one fails', async () => {
    const stream = uniqueName('append');
    await append(stream, 1, NO_STREAM);
    const error = await rejectionOf(append(stream, 1, 7n));
    expect(error).toBeInstanceOf(WrongExpectedVersionError);
    expect(error).toMatchObject({ expectedVersion: 7n, actualVersion: 0n });
  });

  test('an exact revision on a missing stream fails with no_stream as the actual version', async () => {
    const stream = uniqueName('append');
    const error = await rejectionOf(append(stream, 1, 1n));
    expect(error).toBeInstanceOf(WrongExpectedVersionError);
    expect(error).toMatchObject({ streamName: stream, expectedVersion: 1n, actualVersion: NO_STREAM });
  });

  test('a refused append writes nothing of its events', async () => {
    const stream = uniqueName('append');
    await append(stream, 1, NO_STREAM);
    await rejectionOf(append(stream, 3, NO_STREAM));
    expect(await collect(store.client.readStream(stream))).toHaveLength(1);
  });

  test('of appends that race for one revision exactly one wins', async () => {
    const stream = uniqueName('append');
    await append(stream, 1, NO_STREAM);
    const outcomes = await Promise.allSettled(range(8).map(() => append(stream, 1, 0n)));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await collect(store.client.readStream(stream))).toHaveLength(2);
  });

  test('concurrent appends with any all succeed, each contiguous', async () => {
    const stream = uniqueName('append');
    await Promise.all(
      range(20).map((n) => store.client.appendToStream(stream, numberedEvents(5, `writer-${n}`), { ...options })),
    );
    const read = await collect(store.client.readStream(stream));
    expect(read.map(({ event }) => event?.revision)).toEqual(range(100).map(BigInt));
    for (const start of range(20).map((n) => n * 5)) {
      const group = read.slice(start, start + 5);
      expect(new Set(group.map(({ event }) => event?.type)).size).toBe(1);
      expect(group.map(indexOf)).toEqual(range(5));
    }
  });
});

describe('append', () => {
  const store = useEventStore();

  test('a batch in many chunks is one append', async () => {
    const stream = uniqueName('append');
    const before = await store.client.appendToStream(stream, numberedEvents(1));
    // A size of 1 byte makes the first chunk empty and puts each event into its own.
    const result = await store.client.appendToStream(stream, numberedEvents(50, 'chunked', 1), {
      batchAppendSize: 1,
      expectedRevision: before.nextExpectedRevision,
    });
    expect(result.nextExpectedRevision).toBe(50n);
    expect((await collect(store.client.readStream(stream))).map(indexOf)).toEqual(range(51));
  });

  test('a batch in chunks is refused as a whole', async () => {
    const stream = uniqueName('append');
    const error = await rejectionOf(
      store.client.appendToStream(stream, numberedEvents(20), { batchAppendSize: 1, expectedRevision: STREAM_EXISTS }),
    );
    expect(error).toBeInstanceOf(WrongExpectedVersionError);
    await store.client.appendToStream(stream, numberedEvents(1), { expectedRevision: NO_STREAM });
  });

  test('concurrent batches in chunks do not mix', async () => {
    const streams = range(5).map(() => uniqueName('append'));
    await Promise.all(
      streams.map((stream) =>
        store.client.appendToStream(stream, numberedEvents(30, stream), { batchAppendSize: 100 }),
      ),
    );
    for (const stream of streams) {
      const read = await collect(store.client.readStream(stream));
      expect(read.map(indexOf)).toEqual(range(30));
      expect(read.every(({ event }) => event?.type === stream)).toBe(true);
    }
  });

  test('hundreds of batches in flight are each answered once', async () => {
    const streams = range(300).map(() => uniqueName('append'));
    const results = await Promise.all(streams.map((stream) => store.client.appendToStream(stream, numberedEvents(2))));
    expect(results.every(({ nextExpectedRevision }) => nextExpectedRevision === 1n)).toBe(true);
  });

  test('the unary append reports a wrong version as a result when the client does not throw', async () => {
    const stream = uniqueName('append');
    const separator = store.url.includes('?') ? '&' : '?';
    const client = connectClient(`${store.url}${separator}throwOnAppendFailure=false`);
    try {
      await client.appendToStream(stream, numberedEvents(3), unaryPath);
      const refused = await client.appendToStream(stream, numberedEvents(1), {
        ...unaryPath,
        expectedRevision: NO_STREAM,
      });
      expect(refused).toMatchObject({ success: false, nextExpectedRevision: 2n });
    } finally {
      await client.dispose();
    }
  });
});
