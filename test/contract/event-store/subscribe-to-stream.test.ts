import { once } from 'node:events';
import { END, START, jsonEvent } from '@eventstore/db-client';
import { describe, expect, test } from 'vitest';
import { eventually } from '#test/support/eventually.ts';
import { collect, indexOf, numberedEvents, range, record, uniqueName, useEventStore } from './support.ts';

describe('a catch-up subscription to a stream', () => {
  const store = useEventStore();
  const append = (stream: string, count: number, firstIndex = 0) =>
    store.client.appendToStream(stream, numberedEvents(count, 'subscribed', firstIndex));

  test('delivers history, then new events, in order and once', async () => {
    const stream = uniqueName('subscribe');
    await append(stream, 5);
    const recording = record(store.client.subscribeToStream(stream));
    try {
      await recording.delivered(5);
      await append(stream, 3, 5);
      await append(stream, 2, 8);
      expect((await recording.delivered(10)).map(indexOf)).toEqual(range(10));
      expect(recording.events.map(({ event }) => event?.revision)).toEqual(range(10).map(BigInt));
    } finally {
      await recording.stop();
    }
  });

  test('confirms first, and once', async () => {
    const stream = uniqueName('subscribe');
    await append(stream, 3);
    const recording = record(store.client.subscribeToStream(stream));
    try {
      await recording.delivered(3);
      expect(recording.signals[0]).toBe('confirmation');
      expect(recording.signals.filter((signal) => signal === 'confirmation')).toHaveLength(1);
    } finally {
      await recording.stop();
    }
  });

  test('reports when it has caught up, after history and before later events', async () => {
    const stream = uniqueName('subscribe');
    await append(stream, 4);
    const recording = record(store.client.subscribeToStream(stream));
    try {
      await recording.caughtUp();
      await append(stream, 1, 4);
      await recording.delivered(5);
      const before = recording.signals.slice(0, recording.signals.indexOf('caughtUp'));
      expect(before).toEqual(['confirmation', 'event', 'event', 'event', 'event']);
    } finally {
      await recording.stop();
    }
  });

  test('from a revision: begins after it', async () => {
    const stream = uniqueName('subscribe');
    await append(stream, 6);
    const recording = record(store.client.subscribeToStream(stream, { fromRevision: 3n }));
    try {
      await append(stream, 1, 6);
      expect((await recording.delivered(3)).map(indexOf)).toEqual([4, 5, 6]);
    } finally {
      await recording.stop();
    }
  });

  test('from revision 0: begins with revision 1, unlike from start', async () => {
    const stream = uniqueName('subscribe');
    await append(stream, 3);
    const [zero, start] = [
      record(store.client.subscribeToStream(stream, { fromRevision: 0n })),
      record(store.client.subscribeToStream(stream, { fromRevision: START })),
    ];
    try {
      expect((await zero.delivered(2)).map(indexOf)).toEqual([1, 2]);
      expect((await start.delivered(3)).map(indexOf)).toEqual([0, 1, 2]);
    } finally {
      await Promise.all([zero.stop(), start.stop()]);
    }
  });

  test('from the end: delivers only later events', async () => {
    const stream = uniqueName('subscribe');
    await append(stream, 5);
    const recording = record(store.client.subscribeToStream(stream, { fromRevision: END }));
    try {
      await recording.confirmed();
      await append(stream, 2, 5);
      expect((await recording.delivered(2)).map(indexOf)).toEqual([5, 6]);
    } finally {
      await recording.stop();
    }
  });

  test('from a revision that does not exist yet: begins after it', async () => {
    const stream = uniqueName('subscribe');
    await append(stream, 2);
    const recording = record(store.client.subscribeToStream(stream, { fromRevision: 3n }));
    try {
      await recording.confirmed();
      await append(stream, 4, 2);
      expect((await recording.delivered(2)).map(indexOf)).toEqual([4, 5]);
    } finally {
      await recording.stop();
    }
  });

  test.each([START, END] as const)(
    'a stream that is not there yet can be subscribed to from %s',
    async (fromRevision) => {
      const stream = uniqueName('subscribe');
      const recording = record(store.client.subscribeToStream(stream, { fromRevision }));
      try {
        await recording.confirmed();
        await recording.caughtUp();
        await append(stream, 3);
        expect((await recording.delivered(3)).map(indexOf)).toEqual([0, 1, 2]);
      } finally {
        await recording.stop();
      }
    },
  );

  test('a soft-deleted stream can be subscribed to, and delivers the events that revive it', async () => {
    const stream = uniqueName('subscribe');
    await append(stream, 3);
    await store.client.deleteStream(stream);
    const recording = record(store.client.subscribeToStream(stream));
    try {
      await recording.caughtUp();
      await append(stream, 2, 3);
      expect((await recording.delivered(2)).map(indexOf)).toEqual([3, 4]);
    } finally {
      await recording.stop();
    }
  });

  test('delivers nothing of other streams', async () => {
    const stream = uniqueName('subscribe');
    const recording = record(store.client.subscribeToStream(stream));
    try {
      await recording.confirmed();
      await append(`${stream}-other`, 3, 100);
      await append(stream, 1);
      await append(`${stream}-other`, 3, 103);
      await append(stream, 1, 1);
      expect((await recording.delivered(2)).map(indexOf)).toEqual([0, 1]);
      expect(recording.events).toHaveLength(2);
    } finally {
      await recording.stop();
    }
  });

  test('misses and repeats nothing during concurrent appends at full speed', async () => {
    const stream = uniqueName('subscribe');
    await append(stream, 100);
    const writing = (async () => {
      for (const round of range(40)) await append(stream, 25, 100 + round * 25);
    })();
    const recording = record(store.client.subscribeToStream(stream));
    try {
      await writing;
      expect((await recording.delivered(1100)).map(indexOf)).toEqual(range(1100));
    } finally {
      await recording.stop();
    }
  });

  test('a slow reader receives a long history completely', async () => {
    const stream = uniqueName('subscribe');
    for (const round of range(4)) await append(stream, 500, round * 500);
    const read: number[] = [];
    for await (const resolved of store.client.subscribeToStream(stream)) {
      read.push(indexOf(resolved));
      if (read.length % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
      if (read.length === 1000) await append(stream, 10, 2000);
      if (read.length === 2010) break;
    }
    expect(read).toEqual(range(2010));
  });

  test('an event appended while a slow reader reads history is not missed', async () => {
    const stream = uniqueName('subscribe');
    // More than the connection buffers, so the server must wait for the reader.
    const large = () => jsonEvent({ type: 'large', data: { text: 'x'.repeat(8_000) } });
    await store.client.appendToStream(stream, range(110).map(large));
    const subscription = store.client.subscribeToStream(stream);
    await once(subscription, 'confirmation');
    await append(stream, 1);
    const recording = record(subscription);
    try {
      const read = await recording.delivered(111);
      expect(read.map(({ event }) => event?.revision)).toEqual(range(111).map(BigInt));
    } finally {
      await recording.stop();
    }
  });

  test('resubscribing from the last revision continues without a gap', async () => {
    const stream = uniqueName('subscribe');
    await append(stream, 10);
    const first = record(store.client.subscribeToStream(stream));
    await first.delivered(10);
    await first.stop();
    await append(stream, 3, 10);
    const second = record(store.client.subscribeToStream(stream, { fromRevision: 9n }));
    try {
      expect((await second.delivered(3)).map(indexOf)).toEqual([10, 11, 12]);
    } finally {
      await second.stop();
    }
  });

  test('unsubscribing ends the stream, and nothing is delivered afterwards', async () => {
    const stream = uniqueName('subscribe');
    await append(stream, 2);
    const [ended, witness] = [
      record(store.client.subscribeToStream(stream)),
      record(store.client.subscribeToStream(stream)),
    ];
    try {
      await ended.delivered(2);
      await ended.stop();
      await eventually(() => ended.ended);
      await append(stream, 1, 2);
      await witness.delivered(3);
      expect(ended.events).toHaveLength(2);
      expect(ended.errors).toEqual([]);
    } finally {
      await witness.stop();
    }
  });

  test('many subscriptions to one stream each receive all events', async () => {
    const stream = uniqueName('subscribe');
    await append(stream, 10);
    const recordings = range(50).map(() => record(store.client.subscribeToStream(stream)));
    try {
      await Promise.all(recordings.map((recording) => recording.delivered(10)));
      await append(stream, 10, 10);
      for (const recording of recordings) expect((await recording.delivered(20)).map(indexOf)).toEqual(range(20));
    } finally {
      await Promise.all(recordings.map((recording) => recording.stop()));
    }
  });

  test('many subscriptions to different streams do not mix', async () => {
    const streams = range(40).map(() => uniqueName('subscribe'));
    const recordings = streams.map((stream) => record(store.client.subscribeToStream(stream)));
    try {
      await Promise.all(recordings.map((recording) => recording.confirmed()));
      await Promise.all(streams.map((stream) => append(stream, 5)));
      for (const [n, recording] of recordings.entries()) {
        const read = await recording.delivered(5);
        expect(read.map(({ event }) => event?.streamId)).toEqual(range(5).map(() => streams[n]));
      }
    } finally {
      await Promise.all(recordings.map((recording) => recording.stop()));
    }
  });

  test('the metadata stream of a stream can be subscribed to', async () => {
    const stream = uniqueName('subscribe');
    const recording = record(store.client.subscribeToStream(`$$${stream}`));
    try {
      await recording.confirmed();
      await store.client.setStreamMetadata(stream, { own: 1 });
      const [event] = await recording.delivered(1);
      expect(event?.event).toMatchObject({ type: '$metadata', data: { own: 1 } });
    } finally {
      await recording.stop();
    }
  });

  test('an append that was delivered to a subscriber can be read', async () => {
    const stream = uniqueName('subscribe');
    const lengths: Promise<number>[] = [];
    const recording = record(store.client.subscribeToStream(stream), () => {
      lengths.push(collect(store.client.readStream(stream)).then((read) => read.length));
    });
    try {
      await recording.confirmed();
      for (const n of range(10)) await append(stream, 1, n);
      await recording.delivered(10);
      for (const [n, length] of (await Promise.all(lengths)).entries()) expect(length).toBeGreaterThan(n);
    } finally {
      await recording.stop();
    }
  });
});
