import streams from '@eventstore/db-client/generated/streams_pb.js';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';
import { StreamGone } from '#libs/kernel/faults.ts';
import { newId } from '#libs/kernel/ids.ts';
import { connectClient } from '#libs/platform/eventstore/client/connect-client.ts';
import {
  connectEventStore,
  type EventStore,
  type LogFeed,
  type ReadStreamOptions,
  type StoredEvent,
} from '#libs/platform/eventstore/index.ts';
import { startTestEventStore, type TestEventStore } from '#test/support/event-store.ts';
import { foreignEvents, withForeignClient } from '#test/support/foreign-events.ts';
import { logEvent, numberedEvents } from '#test/support/log-events.ts';

let server: TestEventStore;
beforeAll(async () => {
  server = await startTestEventStore();
});
afterAll(() => server.stop());

describe.each([
  { adapter: 'the official client', isEmbedded: false },
  { adapter: 'the embedded event store', isEmbedded: true },
])('the event store through $adapter', ({ isEmbedded }) => {
  let store: EventStore;
  let feed: LogFeed;
  beforeAll(async () => {
    ({ store, feed } = await connectEventStore({ url: server.url, embedded: isEmbedded ? server.local : undefined }));
  });
  afterAll(() => store.close());

  const newStream = () => `entity-${newId()}`;
  const read = async (stream: string, options?: ReadStreamOptions) => {
    const events: StoredEvent[] = [];
    for await (const event of store.readStream(stream, options)) events.push(event);
    return events;
  };
  const numbers = async (stream: string, options?: ReadStreamOptions) =>
    (await read(stream, options)).map((event) => event.data);

  test('reads return all fields of appended events', async () => {
    const stream = newStream();
    const event = logEvent({ text: 'grüße 👋', nested: { list: [1, null, 'x'] } });
    const before = Date.now();
    const appended = await store.append(stream, NO_EVENTS, [event]);
    expect(appended).toMatchObject({ kind: 'appended', revision: 0, position: { commit: expect.any(BigInt) } });
    const [stored, ...more] = await read(stream);
    expect(more).toEqual([]);
    expect(stored).toEqual({
      stream,
      revision: 0,
      position: appended.kind === 'appended' && appended.position,
      id: event.id,
      type: 'Tested.v1',
      data: event.data,
      metadata: event.metadata,
      createdMs: expect.any(Number),
    });
    expect(stored?.createdMs).toBeGreaterThanOrEqual(before - 1000);
    expect(stored?.createdMs).toBeLessThanOrEqual(Date.now() + 1000);
  });

  // A new version of the client may decode elsewhere: all results would be right, and reads a third slower.
  test.skipIf(isEmbedded)('reads are decoded without the generated classes', async () => {
    const stream = newStream();
    expect(await store.append(stream, NO_EVENTS, numberedEvents(3))).toMatchObject({ revision: 2 });
    const generated = vi.spyOn(streams.ReadResp, 'deserializeBinary');
    try {
      expect(await read(stream)).toHaveLength(3);
      expect(generated).not.toHaveBeenCalled();
    } finally {
      generated.mockRestore();
    }
  });

  // Servers close a connection whose client resets more calls than a limit: 1,000 at once for an HTTP/2 server of Node.
  test.each([
    ['of missing streams', async () => (await read(newStream())).length, 0],
    ['that the caller leaves at the limit', (stream: string) => newestRevision(stream), 4],
    ['of the head of the log', async () => typeof (await feed.head())?.commit, 'bigint'],
  ])('thousands of reads %s do not end other calls of the connection', async (_name, once, expected) => {
    const stream = newStream();
    await store.append(stream, NO_EVENTS, numberedEvents(5));
    for (let round = 0; round < 100; round += 1) {
      const results = await Promise.all(Array.from({ length: 20 }, () => once(stream)));
      expect(new Set(results)).toEqual(new Set([expected]));
    }
  });

  async function newestRevision(stream: string): Promise<number | undefined> {
    for await (const { revision } of store.readStream(stream, { direction: 'backwards', limit: 1 })) return revision;
  }

  test('an append at another revision than expected is a conflict and writes nothing', async () => {
    const stream = newStream();
    await store.append(stream, NO_EVENTS, numberedEvents(3));
    for (const wrong of [NO_EVENTS, streamRevision(0), streamRevision(1), streamRevision(7)]) {
      expect(await store.append(stream, wrong, [logEvent({ wrong })])).toEqual({ kind: 'conflict' });
    }
    expect(await store.append(newStream(), streamRevision(0), [logEvent({})])).toEqual({ kind: 'conflict' });
    expect(await read(stream)).toHaveLength(3);
  });

  test('repeating an append with the same events and expected revision is acknowledged and writes nothing', async () => {
    const stream = newStream();
    const events = numberedEvents(2);
    const first = await store.append(stream, NO_EVENTS, events);
    await store.append(stream, streamRevision(1), numberedEvents(1, 2));
    // It has written nothing, and so says no time.
    expect(await store.append(stream, NO_EVENTS, events)).toEqual({ ...first, createdMs: undefined });
    expect(await numbers(stream)).toEqual([{ n: 0 }, { n: 1 }, { n: 2 }]);
  });

  test('exactly one of many appends at the same revision succeeds', async () => {
    const stream = newStream();
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, n) => store.append(stream, NO_EVENTS, [logEvent({ n })])),
    );
    expect(results.filter(({ kind }) => kind === 'appended')).toHaveLength(1);
    expect(await read(stream)).toHaveLength(1);
  });

  test('reads respect their start and limit in both directions', async () => {
    const stream = newStream();
    await store.append(stream, NO_EVENTS, numberedEvents(600));
    const all = numberedEvents(600).map(({ data }) => data);
    expect(await numbers(stream)).toEqual(all);
    expect(await numbers(stream, { from: streamRevision(597) })).toEqual(all.slice(597));
    expect(await numbers(stream, { from: streamRevision(600) })).toEqual([]);
    expect(await numbers(stream, { limit: 2 })).toEqual(all.slice(0, 2));
    expect(await numbers(stream, { limit: 0 })).toEqual([]);
    expect(await numbers(stream, { direction: 'backwards' })).toEqual(all.toReversed());
    expect(await numbers(stream, { direction: 'backwards', limit: 1 })).toEqual(all.slice(599));
    expect(await numbers(stream, { direction: 'backwards', from: streamRevision(1) })).toEqual([{ n: 1 }, { n: 0 }]);
  });

  test('a reader may stop at any event', async () => {
    const stream = newStream();
    await store.append(stream, NO_EVENTS, numberedEvents(1000));
    for (let round = 0; round < 20; round++) {
      for await (const event of store.readStream(stream)) if (event.revision === 5) break;
    }
    expect(await read(stream)).toHaveLength(1000);
  });

  test('missing and deleted streams read as empty', async () => {
    const [deleted, tombstoned] = [newStream(), newStream()];
    await store.append(deleted, NO_EVENTS, numberedEvents(1));
    await store.append(tombstoned, NO_EVENTS, numberedEvents(1));
    const admin = connectClient(server.url);
    await admin.deleteStream(deleted, { expectedRevision: 'any' });
    await admin.tombstoneStream(tombstoned, { expectedRevision: 'any' });
    await admin.dispose();
    for (const stream of [newStream(), deleted, tombstoned]) {
      expect(await read(stream)).toEqual([]);
      expect(await read(stream, { direction: 'backwards', limit: 1 })).toEqual([]);
    }
    await expect(store.append(tombstoned, streamRevision(0), [logEvent({})])).rejects.toThrow(StreamGone);
    // A caller that has read from it must learn that it is gone.
    for (const stream of [deleted, tombstoned]) {
      await expect(read(stream, { from: streamRevision(1) })).rejects.toThrow(StreamGone);
    }
  });

  test('an append that is too large is refused with a RangeError, and does not affect others', async () => {
    const stream = newStream();
    const tooLarge = store.append(stream, NO_EVENTS, [logEvent({ text: 'x'.repeat(1_100_000) })]);
    const others = store.append(newStream(), NO_EVENTS, numberedEvents(1));
    await expect(tooLarge).rejects.toThrow(RangeError);
    expect(await others).toMatchObject({ kind: 'appended' });
    expect(await read(stream)).toEqual([]);
  });

  test('a ping is answered', async () => {
    await expect(store.ping()).resolves.toBeUndefined();
  });

  test('a stream that begins after the needed revision is gone, and reads from its first revision on', async () => {
    const stream = newStream();
    await store.append(stream, NO_EVENTS, numberedEvents(5));
    const admin = connectClient(server.url);
    await admin.setStreamMetadata(stream, { truncateBefore: 3 });
    await admin.dispose();
    await expect(read(stream)).rejects.toMatchObject({ firstSequence: 4 });
    expect(await numbers(stream, { from: streamRevision(3) })).toEqual([{ n: 3 }, { n: 4 }]);
    expect(await numbers(stream, { needs: 'nothing' })).toEqual([{ n: 3 }, { n: 4 }]);
    expect(await numbers(stream, { direction: 'backwards' })).toEqual([{ n: 4 }, { n: 3 }]);
    expect(await feed.mayHaveRemoved(stream, streamRevision(2))).toBe(true);
    expect(await feed.mayHaveRemoved(stream, streamRevision(3))).toBe(false);
  });

  test('events of any form are read like by the official client', async () => {
    const stream = newStream();
    await store.append(stream, NO_EVENTS, numberedEvents(1));
    await withForeignClient(server.url, async (client) => {
      for (const [, event] of foreignEvents) await client.appendToStream(stream, event());
    });
    const official = await connectEventStore({ url: server.url });
    const theirs = await Array.fromAsync(official.store.readStream(stream));
    await official.close();
    expect(theirs.length).toBeGreaterThan(3);
    expect(await read(stream)).toEqual(theirs);
  });

  test('appends that one message holds are decided in their order', async () => {
    const stream = newStream();
    const appended = numberedEvents(100).map((event, n) => store.append(stream, streamRevision(n - 1), [event]));
    expect((await Promise.all(appended)).map((result) => 'revision' in result && result.revision)).toEqual(
      numberedEvents(100).map((_, n) => n),
    );
  });

  test('a closed connection refuses calls', async () => {
    const closed = await connectEventStore({ url: server.url, embedded: isEmbedded ? server.local : undefined });
    await closed.close();
    const refused = { code: 'stopping' };
    await expect(closed.store.append(newStream(), NO_EVENTS, numberedEvents(1))).rejects.toMatchObject(refused);
    await expect(Array.fromAsync(closed.store.readStream(newStream()))).rejects.toMatchObject(refused);
    await expect(closed.store.ping()).rejects.toMatchObject(refused);
  });
});
