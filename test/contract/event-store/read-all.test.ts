// A shared server may have other events in between: the tests check their own
// events and the order, never the number of all events.
import { BACKWARDS, END, START, type AllStreamResolvedEvent, type Position } from '@eventstore/db-client';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  collect,
  eventOf,
  indexOf,
  numberedEvents,
  positionOf,
  range,
  take,
  uniqueName,
  useEventStore,
} from './support.ts';

describe('reading $all', () => {
  const store = useEventStore();
  const one = uniqueName('all-one');
  const other = uniqueName('all-other');
  let first: Position;
  let last: Position;

  const own = (read: AllStreamResolvedEvent[]) =>
    read.filter(({ event }) => event?.streamId === one || event?.streamId === other);

  beforeAll(async () => {
    await store.client.appendToStream(one, numberedEvents(2, 'all', 0));
    await store.client.appendToStream(other, numberedEvents(2, 'all', 2));
    last = positionOf(await store.client.appendToStream(one, numberedEvents(2, 'all', 4)));
    const [start] = await collect(store.client.readStream(one, { maxCount: 1 }));
    first = positionOf(start?.event ?? {});
  });

  test('forwards: events of all streams in the order in which they were appended', async () => {
    const read = own(await collect(store.client.readAll({ fromPosition: first })));
    expect(read.map(indexOf)).toEqual(range(6));
    expect(read.map(({ event }) => event?.streamId)).toEqual([one, one, other, other, one, one]);
  });

  test('from the start there are at least these events', async () => {
    expect(own(await collect(store.client.readAll({ fromPosition: START }))).map(indexOf)).toEqual(range(6));
  });

  test('positions increase, and each event has the revision that it has in its stream', async () => {
    const read = await collect(store.client.readAll({ fromPosition: first }));
    const commits = read.map((one) => eventOf(one).position.commit);
    expect(commits).toEqual(commits.toSorted((a, b) => (a < b ? -1 : 1)));
    expect(new Set(commits).size).toBe(commits.length);
    expect(own(read).map(({ event }) => event?.revision)).toEqual([0n, 1n, 0n, 1n, 2n, 3n]);
  });

  test('forwards from a position: its event is included', async () => {
    const [read] = await collect(store.client.readAll({ fromPosition: last, maxCount: 1 }));
    expect(read && eventOf(read)).toMatchObject({ streamId: one, revision: 3n, position: last });
  });

  test('a read from the position of an event starts with that event', async () => {
    const all = own(await collect(store.client.readAll({ fromPosition: first })));
    for (const read of all) {
      const [again] = await collect(store.client.readAll({ fromPosition: eventOf(read).position, maxCount: 1 }));
      expect(again).toEqual(read);
    }
  });

  test('maxCount bounds the events', async () => {
    expect(await collect(store.client.readAll({ maxCount: 2 }))).toHaveLength(2);
    expect(await collect(store.client.readAll({ fromPosition: first, maxCount: 3 }))).toHaveLength(3);
    expect(await collect(store.client.readAll({ fromPosition: END, direction: BACKWARDS, maxCount: 3 }))).toHaveLength(
      3,
    );
  });

  test('backwards from the end: the newest first', async () => {
    const read: AllStreamResolvedEvent[] = [];
    for await (const event of store.client.readAll({ direction: BACKWARDS, fromPosition: END })) {
      read.push(event);
      if (own(read).length === 6) break;
    }
    expect(own(read).map(indexOf)).toEqual(range(6).toReversed());
    const commits = read.map((one) => eventOf(one).position.commit);
    expect(commits).toEqual(commits.toSorted((a, b) => (a > b ? -1 : 1)));
  });

  test('backwards from a position: its event is not included, the one before it is the first', async () => {
    const read = await take(store.client.readAll({ direction: BACKWARDS, fromPosition: last }), 3);
    for (const { event } of read) expect(event?.position.commit).toBeLessThan(last.commit);
    expect(own(read).map(indexOf)[0]).toBe(4);
  });

  test('forwards from the end, and backwards from the start, return nothing', async () => {
    const backwards = await collect(store.client.readAll({ direction: BACKWARDS, fromPosition: START }));
    expect(backwards).toEqual([]);
    const forwards = await collect(store.client.readAll({ fromPosition: END }));
    expect(own(forwards)).toEqual([]);
  });

  test('the events of $all are the events of their streams', async () => {
    const all = own(await collect(store.client.readAll({ fromPosition: first })));
    const streams = [
      ...(await collect(store.client.readStream(one))),
      ...(await collect(store.client.readStream(other))),
    ];
    const byId = (read: { event?: { id: string } }[]) => new Map(read.map(({ event }) => [event?.id, event]));
    expect(byId(all)).toEqual(byId(streams));
  });

  test('more events than fit into one page are returned in order and once', async () => {
    const stream = uniqueName('all-long');
    const start = positionOf(await store.client.appendToStream(stream, numberedEvents(1)));
    for (const round of range(4))
      await store.client.appendToStream(stream, numberedEvents(400, 'page', 1 + round * 400));
    const read = await collect(store.client.readAll({ fromPosition: start }));
    expect(read.filter(({ event }) => event?.streamId === stream).map(indexOf)).toEqual(range(1601));
  });

  test('events of soft-deleted and of tombstoned streams stay in $all', async () => {
    const [deleted, tombstoned] = [uniqueName('all-deleted'), uniqueName('all-tombstoned')];
    const start = positionOf(await store.client.appendToStream(deleted, numberedEvents(1)));
    await store.client.appendToStream(tombstoned, numberedEvents(1));
    await store.client.deleteStream(deleted);
    await store.client.tombstoneStream(tombstoned);
    const read = await collect(store.client.readAll({ fromPosition: start }));
    const typesOf = (stream: string) =>
      read.filter(({ event }) => event?.streamId === stream).map(({ event }) => event?.type);
    expect(typesOf(deleted)).toEqual(['contract-event']);
    expect(typesOf(`$$${deleted}`)).toEqual(['$metadata']);
    expect(typesOf(tombstoned)).toEqual(['contract-event', '$streamDeleted']);
  });

  test('truncated events stay in $all', async () => {
    const stream = uniqueName('all-truncated');
    const start = positionOf(await store.client.appendToStream(stream, numberedEvents(1)));
    await store.client.appendToStream(stream, numberedEvents(3, 'all', 1));
    await store.client.setStreamMetadata(stream, { maxCount: 1 });
    const read = await collect(store.client.readAll({ fromPosition: start }));
    expect(read.filter(({ event }) => event?.streamId === stream).map(indexOf)).toEqual(range(4));
  });
});
