import {
  END,
  START,
  eventTypeFilter,
  excludeSystemEvents,
  jsonEvent,
  streamNameFilter,
  type AllStreamResolvedEvent,
  type Position,
} from '@eventstore/db-client';
import { describe, expect, test } from 'vitest';
import { eventually } from '#test/support/eventually.ts';
import {
  eventOf,
  indexOf,
  numberedEvents,
  positionOf,
  range,
  record,
  uniqueName,
  useEventStore,
  type Recording,
} from './support.ts';

const increasing = (positions: Position[]) =>
  positions.every(({ commit }, n) => n === 0 || commit >= (positions[n - 1]?.commit ?? 0n));

describe('a catch-up subscription to $all', () => {
  const store = useEventStore();
  const append = async (stream: string, count: number, firstIndex = 0, type = 'subscribed') =>
    positionOf(await store.client.appendToStream(stream, numberedEvents(count, type, firstIndex)));

  /** Waits until `count` events of `streams` were delivered; a shared server delivers other events, too. */
  const ownDelivered = (recording: Recording<AllStreamResolvedEvent>, streams: string[], count: number) =>
    eventually(() => {
      if (recording.errors[0]) throw recording.errors[0];
      const own = recording.events.filter(({ event }) => event && streams.includes(event.streamId));
      if (own.length < count) throw new Error(`${own.length} of ${count} own events delivered`);
      return own;
    });

  test('delivers events of all streams, history and live, in the order of their positions', async () => {
    const [one, other] = [uniqueName('all-one'), uniqueName('all-other')];
    await append(one, 2);
    await append(other, 2, 2);
    const recording = record(store.client.subscribeToAll({ fromPosition: START }));
    try {
      await ownDelivered(recording, [one, other], 4);
      await append(one, 1, 4);
      await append(other, 1, 5);
      const own = await ownDelivered(recording, [one, other], 6);
      expect(own.map(indexOf)).toEqual(range(6));
      expect(increasing(recording.events.map((read) => eventOf(read).position))).toBe(true);
      expect(new Set(recording.events.map(({ event }) => event?.position.commit)).size).toBe(recording.events.length);
    } finally {
      await recording.stop();
    }
  });

  test('from a position: begins after it', async () => {
    const stream = uniqueName('all');
    const position = await append(stream, 3);
    await append(stream, 2, 3);
    const recording = record(store.client.subscribeToAll({ fromPosition: position }));
    try {
      await append(stream, 1, 5);
      const own = await ownDelivered(recording, [stream], 3);
      expect(own.map(indexOf)).toEqual([3, 4, 5]);
      expect(recording.events[0] && eventOf(recording.events[0]).position.commit).toBeGreaterThan(position.commit);
    } finally {
      await recording.stop();
    }
  });

  test('from the end: delivers only later events', async () => {
    const stream = uniqueName('all');
    const before = await append(stream, 3);
    const recording = record(store.client.subscribeToAll({ fromPosition: END }));
    try {
      await recording.confirmed();
      await append(stream, 2, 3);
      expect((await ownDelivered(recording, [stream], 2)).map(indexOf)).toEqual([3, 4]);
      for (const read of recording.events) expect(eventOf(read).position.commit).toBeGreaterThan(before.commit);
    } finally {
      await recording.stop();
    }
  });

  test('confirms first, and reports when it has caught up', async () => {
    const stream = uniqueName('all');
    const position = await append(stream, 1);
    await append(stream, 2, 1);
    const recording = record(store.client.subscribeToAll({ fromPosition: position }));
    try {
      await recording.caughtUp();
      expect(recording.signals[0]).toBe('confirmation');
      const before = recording.signals.slice(0, recording.signals.indexOf('caughtUp'));
      expect(before.filter((signal) => signal === 'event').length).toBeGreaterThanOrEqual(2);
    } finally {
      await recording.stop();
    }
  });

  test('resubscribing from the last position continues without a gap', async () => {
    const stream = uniqueName('all');
    const start = await append(stream, 1);
    await append(stream, 50, 1);
    const first = record(store.client.subscribeToAll({ fromPosition: start }));
    const seen = await ownDelivered(first, [stream], 50);
    await first.stop();
    await append(stream, 10, 51);
    const last = seen[29];
    const second = record(store.client.subscribeToAll({ fromPosition: last ? eventOf(last).position : END }));
    try {
      expect((await ownDelivered(second, [stream], 30)).map(indexOf)).toEqual(range(30, 31));
    } finally {
      await second.stop();
    }
  });

  test('misses and repeats nothing during concurrent appends at full speed', async () => {
    const stream = uniqueName('all');
    const start = await append(stream, 1);
    const writing = (async () => {
      for (const round of range(40)) await append(stream, 25, 1 + round * 25);
    })();
    const recording = record(store.client.subscribeToAll({ fromPosition: start }));
    try {
      await writing;
      expect((await ownDelivered(recording, [stream], 1000)).map(indexOf)).toEqual(range(1000, 1));
    } finally {
      await recording.stop();
    }
  });

  test('concurrent subscriptions each receive all events', async () => {
    const stream = uniqueName('all');
    const start = await append(stream, 1);
    const recordings = range(30).map(() => record(store.client.subscribeToAll({ fromPosition: start })));
    try {
      await append(stream, 20, 1);
      for (const recording of recordings) {
        expect((await ownDelivered(recording, [stream], 20)).map(indexOf)).toEqual(range(20, 1));
      }
    } finally {
      await Promise.all(recordings.map((recording) => recording.stop()));
    }
  });

  test('unsubscribing ends the stream without an error', async () => {
    const recording = record(store.client.subscribeToAll({ fromPosition: END }));
    await recording.confirmed();
    await recording.stop();
    await eventually(() => recording.ended);
    expect(recording.errors).toEqual([]);
  });

  describe('with a filter', () => {
    const prefix = () => uniqueName('filtered');

    test.each([
      ['a prefix', (name: string) => streamNameFilter({ prefixes: [name] })],
      ['one of several prefixes', (name: string) => streamNameFilter({ prefixes: [uniqueName('none'), name] })],
      ['a regular expression', (name: string) => streamNameFilter({ regex: `^${name}-[a-z]+$` })],
    ])('of stream names by %s: delivers those streams only, history and live', async (_, filterOf) => {
      const name = prefix();
      await append(`${name}-a`, 2);
      await append(`other-${name}-a`, 2, 100);
      await append(`${name}-b`, 2, 2);
      const recording = record(store.client.subscribeToAll({ fromPosition: START, filter: filterOf(name) }));
      try {
        await recording.delivered(4);
        await append(`other-${name}-b`, 2, 102);
        await append(`${name}-a`, 1, 4);
        await append(`${name}-b`, 1, 5);
        expect((await recording.delivered(6)).map(indexOf)).toEqual(range(6));
        expect(recording.events).toHaveLength(6);
      } finally {
        await recording.stop();
      }
    });

    test.each([
      ['a prefix', (name: string) => eventTypeFilter({ prefixes: [name] })],
      ['one of several prefixes', (name: string) => eventTypeFilter({ prefixes: [name, uniqueName('none')] })],
      ['a regular expression', (name: string) => eventTypeFilter({ regex: `^${name}_[0-9]+$` })],
    ])('of event types by %s: delivers those types only, history and live', async (_, filterOf) => {
      const name = prefix();
      const stream = uniqueName('all');
      await append(stream, 2, 0, `${name}_1`);
      await append(stream, 2, 100, `not-${name}_1`);
      await append(stream, 2, 2, `${name}_22`);
      const recording = record(store.client.subscribeToAll({ fromPosition: START, filter: filterOf(name) }));
      try {
        await recording.delivered(4);
        await append(stream, 2, 102, 'unrelated');
        await append(stream, 1, 4, `${name}_3`);
        expect((await recording.delivered(5)).map(indexOf)).toEqual(range(5));
        expect(recording.events).toHaveLength(5);
      } finally {
        await recording.stop();
      }
    });

    test('that excludes system events: delivers none of them', async () => {
      const stream = uniqueName('all');
      const start = await append(stream, 1);
      await store.client.setStreamMetadata(stream, { own: 1 });
      await append(stream, 1, 1);
      const recording = record(store.client.subscribeToAll({ fromPosition: start, filter: excludeSystemEvents() }));
      try {
        await store.client.setStreamMetadata(stream, { own: 2 });
        await append(stream, 1, 2);
        expect((await ownDelivered(recording, [stream], 2)).map(indexOf)).toEqual([1, 2]);
        expect(recording.events.filter(({ event }) => event?.type.startsWith('$'))).toEqual([]);
      } finally {
        await recording.stop();
      }
    });

    test('and a position: begins after it', async () => {
      const name = prefix();
      const position = await append(`${name}-a`, 3);
      await append(`${name}-b`, 2, 3);
      const filter = streamNameFilter({ prefixes: [name] });
      const recording = record(store.client.subscribeToAll({ fromPosition: position, filter }));
      try {
        expect((await recording.delivered(2)).map(indexOf)).toEqual([3, 4]);
      } finally {
        await recording.stop();
      }
    });

    test('from the end: delivers only later events', async () => {
      const name = prefix();
      await append(name, 3);
      const filter = streamNameFilter({ prefixes: [name] });
      const recording = record(store.client.subscribeToAll({ fromPosition: END, filter }));
      try {
        await recording.confirmed();
        await append(name, 1, 3);
        expect((await recording.delivered(1)).map(indexOf)).toEqual([3]);
      } finally {
        await recording.stop();
      }
    });

    /** Subscribes with a filter that matches nothing, and records the checkpoints. */
    const watchCheckpoints = (
      fromPosition: Position,
      options: { maxSearchWindow?: number; checkpointInterval: number },
    ) => {
      const checkpoints: Position[] = [];
      const filter = streamNameFilter({
        prefixes: [uniqueName('nothing')],
        checkpointReached: (_, position) => void checkpoints.push(position),
        ...options,
      });
      return { checkpoints, recording: record(store.client.subscribeToAll({ fromPosition, filter })) };
    };

    test('checkpoints report the progress of the search, in history', async () => {
      const start = await append(uniqueName('noise'), 1);
      const end = await append(uniqueName('noise'), 120);
      const { checkpoints, recording } = watchCheckpoints(start, { maxSearchWindow: 10, checkpointInterval: 2 });
      try {
        await eventually(() => (checkpoints.at(-1)?.commit ?? 0n) >= end.commit);
        expect(checkpoints.length).toBeGreaterThanOrEqual(120 / (10 * 2));
        expect(increasing(checkpoints)).toBe(true);
        expect(checkpoints[0]?.commit).toBeLessThan(end.commit);
        expect(recording.events).toEqual([]);
      } finally {
        await recording.stop();
      }
    });

    test('a checkpoint is sent on catching up, also after fewer events than the interval', async () => {
      const start = await append(uniqueName('noise'), 1);
      const end = await append(uniqueName('noise'), 3);
      const { checkpoints, recording } = watchCheckpoints(start, { checkpointInterval: 1000 });
      try {
        await eventually(() => checkpoints.some(({ commit }) => commit >= end.commit));
        expect(recording.events).toEqual([]);
      } finally {
        await recording.stop();
      }
    });

    test('checkpoints report the progress of the search, live', async () => {
      const start = await append(uniqueName('noise'), 1);
      const { checkpoints, recording } = watchCheckpoints(start, { checkpointInterval: 1 });
      try {
        await recording.caughtUp();
        const noise = uniqueName('noise');
        for (const round of range(8)) await append(noise, 32, round * 32);
        const middle = await append(noise, 1, 256);
        for (const round of range(4)) await append(noise, 32, 300 + round * 32);
        await eventually(() => checkpoints.some(({ commit }) => commit >= middle.commit));
        expect(checkpoints.filter(({ commit }) => commit > start.commit).length).toBeGreaterThanOrEqual(8);
        expect(increasing(checkpoints)).toBe(true);
      } finally {
        await recording.stop();
      }
    });

    test('a subscription resumes from a checkpoint without loss', async () => {
      const name = prefix();
      const start = await append(uniqueName('noise'), 1);
      await append(uniqueName('noise'), 100);
      const { checkpoints, recording } = watchCheckpoints(start, { maxSearchWindow: 10, checkpointInterval: 1 });
      await eventually(() => checkpoints.length > 3);
      await recording.stop();
      const expected = await store.client.appendToStream(
        `${name}-a`,
        jsonEvent({ type: 'wanted', data: { index: 7 } }),
      );
      const resumed = record(
        store.client.subscribeToAll({
          fromPosition: checkpoints.at(-1) ?? END,
          filter: streamNameFilter({ prefixes: [name] }),
        }),
      );
      try {
        const [wanted] = await resumed.delivered(1);
        expect(wanted && eventOf(wanted).position).toEqual(expected.position);
      } finally {
        await resumed.stop();
      }
    });

    test('checkpoints never run ahead of matching events that were not delivered yet', async () => {
      const name = prefix();
      const noise = uniqueName('noise');
      const start = await append(noise, 1);
      const log: { kind: 'event' | 'checkpoint'; commit: bigint }[] = [];
      const filter = streamNameFilter({
        prefixes: [name],
        maxSearchWindow: 5,
        checkpointInterval: 1,
        checkpointReached: (_, { commit }) => void log.push({ kind: 'checkpoint', commit }),
      });
      for (const round of range(20)) {
        await append(noise, 7, round * 7);
        await append(name, 1, round);
      }
      const recording = record(store.client.subscribeToAll({ fromPosition: start, filter }), (read) => {
        log.push({ kind: 'event', commit: eventOf(read).position.commit });
      });
      try {
        expect((await recording.delivered(20)).map(indexOf)).toEqual(range(20));
        await eventually(() => log.some(({ kind }) => kind === 'checkpoint'));
        const ahead = log.filter(({ kind, commit }, at) => {
          const earlier = log.slice(0, at).filter((entry) => entry.kind === 'checkpoint');
          return kind === 'event' && earlier.some((checkpoint) => checkpoint.commit >= commit);
        });
        expect(ahead).toEqual([]);
      } finally {
        await recording.stop();
      }
    });
  });
});
