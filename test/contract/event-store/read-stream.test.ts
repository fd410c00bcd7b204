import {
  BACKWARDS,
  END,
  START,
  StreamDeletedError,
  StreamNotFoundError,
  type ReadStreamOptions,
} from '@eventstore/db-client';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import { StreamsClient } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import streams, { type ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import { credentials } from '@grpc/grpc-js';
import { beforeAll, describe, expect, test } from 'vitest';
import { collect, eventOf, indexOf, numberedEvents, range, rejectionOf, uniqueName, useEventStore } from './support.ts';

describe('reading a stream', () => {
  const store = useEventStore();
  const stream = uniqueName('read');
  const indexes = async (options?: ReadStreamOptions) =>
    (await collect(store.client.readStream(stream, options))).map(indexOf);

  beforeAll(async () => {
    await store.client.appendToStream(stream, numberedEvents(10));
  });

  test('by default all events forwards from the start', async () => {
    expect(await indexes()).toEqual(range(10));
  });

  test.each([
    ['start', { fromRevision: START }, range(10)],
    ['a revision, which is included', { fromRevision: 7n }, [7, 8, 9]],
    ['revision 0', { fromRevision: 0n }, range(10)],
    ['a revision with a limit', { fromRevision: 2n, maxCount: 3 }, [2, 3, 4]],
    ['start with a limit', { maxCount: 1 }, [0]],
    ['start with a limit beyond the end', { maxCount: 100 }, range(10)],
    ['the last revision', { fromRevision: 9n }, [9]],
    ['a revision beyond the end', { fromRevision: 10n }, []],
  ] as const)('forwards from %s', async (_, options, expected) => {
    expect(await indexes(options)).toEqual(expected);
  });

  test.each([
    ['end', { fromRevision: END }, range(10).toReversed()],
    ['end with a limit', { fromRevision: END, maxCount: 2 }, [9, 8]],
    ['a revision, which is included', { fromRevision: 2n }, [2, 1, 0]],
    ['a revision with a limit', { fromRevision: 5n, maxCount: 2 }, [5, 4]],
    ['revision 0', { fromRevision: 0n }, [0]],
    ['start', { fromRevision: START }, [0]],
    ['a revision beyond the end', { fromRevision: 100n }, range(10).toReversed()],
  ] as const)('backwards from %s', async (_, options, expected) => {
    expect(await indexes({ ...options, direction: BACKWARDS })).toEqual(expected);
  });

  test('more events than fit into one page are returned in order and once, in both directions', async () => {
    const long = uniqueName('read-long');
    for (const start of range(5)) await store.client.appendToStream(long, numberedEvents(500, 'page', start * 500));
    expect((await collect(store.client.readStream(long))).map(indexOf)).toEqual(range(2500));
    const backwards = await collect(store.client.readStream(long, { direction: BACKWARDS, fromRevision: END }));
    expect(backwards.map(indexOf)).toEqual(range(2500).toReversed());
    expect(await collect(store.client.readStream(long, { maxCount: 1234 }))).toHaveLength(1234);
  });

  test('a reader that stops early does not affect others', async () => {
    for await (const read of store.client.readStream(stream)) if (indexOf(read) === 3) break;
    expect(await indexes()).toEqual(range(10));
  });

  test('a stream that never existed is not found, and the error names it', async () => {
    const missing = uniqueName('missing-Ü');
    for (const direction of ['forwards', 'backwards'] as const) {
      const error = await rejectionOf(collect(store.client.readStream(missing, { direction })));
      expect(error).toBeInstanceOf(StreamNotFoundError);
      expect(error).toMatchObject({ streamName: missing });
    }
  });

  test('a soft-deleted stream is not found', async () => {
    const deleted = uniqueName('deleted');
    await store.client.appendToStream(deleted, numberedEvents(2));
    await store.client.deleteStream(deleted);
    expect(await rejectionOf(collect(store.client.readStream(deleted)))).toBeInstanceOf(StreamNotFoundError);
    const backwards = store.client.readStream(deleted, { direction: BACKWARDS, fromRevision: END });
    expect(await rejectionOf(collect(backwards))).toBeInstanceOf(StreamNotFoundError);
  });

  test('a tombstoned stream is deleted, and the error names it', async () => {
    const tombstoned = uniqueName('tombstoned');
    await store.client.appendToStream(tombstoned, numberedEvents(2));
    await store.client.tombstoneStream(tombstoned);
    for (const direction of ['forwards', 'backwards'] as const) {
      const error = await rejectionOf(collect(store.client.readStream(tombstoned, { direction })));
      expect(error).toBeInstanceOf(StreamDeletedError);
      expect(error).toMatchObject({ streamName: tombstoned });
    }
  });

  test('an acknowledged append can be read immediately', async () => {
    const own = uniqueName('read-own');
    for (const count of range(20, 1)) {
      await store.client.appendToStream(own, numberedEvents(1));
      const [last] = await collect(
        store.client.readStream(own, { direction: BACKWARDS, fromRevision: END, maxCount: 1 }),
      );
      expect(last && eventOf(last).revision).toBe(BigInt(count - 1));
    }
  });
});

/** Clients that know it ask for it by a number of compatibility: those for Java, .NET and Rust. That for Go crashes at it. */
describe('the last position of a stream', () => {
  const store = useEventStore();
  const stream = uniqueName('last-position');

  beforeAll(async () => {
    await store.client.appendToStream(stream, numberedEvents(10));
  });

  async function lastPosition(
    from: number,
    count: number,
    { isBackwards = false, compatibility = 1 } = {},
  ): Promise<string | null> {
    const { hostname, port } = new URL(store.url.replace('esdb:', 'http:'));
    const client = new StreamsClient(`${hostname}:${port}`, credentials.createInsecure());
    const streamOptions = new streams.ReadReq.Options.StreamOptions();
    streamOptions.setStreamIdentifier(
      new shared.StreamIdentifier().setStreamName(Buffer.from(stream).toString('base64')),
    );
    streamOptions.setRevision(String(from));
    const options = new streams.ReadReq.Options();
    options.setStream(streamOptions);
    options.setReadDirection(isBackwards ? 1 : 0);
    options.setCount(String(count));
    options.setNoFilter(new shared.Empty());
    if (compatibility > 0) {
      options.setControlOption(new streams.ReadReq.Options.ControlOption().setCompatibility(compatibility));
    }
    options.setUuidOption(new streams.ReadReq.Options.UUIDOption().setString(new shared.Empty()));
    let last: string | null = null;
    try {
      for await (const response of client.read(new streams.ReadReq().setOptions(options))) {
        expect(last).toBeNull();
        // Parley decodes responses with an event itself, without the members of others.
        const { hasEvent } = response as ReadResp;
        if (hasEvent.call(response)) continue;
        if ((response as ReadResp).hasLastStreamPosition()) last = (response as ReadResp).getLastStreamPosition();
      }
    } finally {
      client.close();
    }
    return last;
  }

  test.each([
    ['a read to the end', 0, 100, '9'],
    ['a read of exactly the rest', 5, 5, '9'],
    ['a read from beyond the end', 10, 5, '9'],
    ['a read that ends before the end', 0, 9, '9'],
  ] as const)('ends %s', async (_, from, count, expected) => {
    expect(await lastPosition(from, count)).toBe(expected);
  });

  test('ends a read backwards', async () => {
    expect(await lastPosition(9, 100, { isBackwards: true })).toBe('9');
  });

  test('is not sent to clients that do not ask for it', async () => {
    expect(await lastPosition(0, 100, { compatibility: 0 })).toBeNull();
  });
});
