// Groups on $all receive all events of the server, so each test restricts itself
// to its own streams, by a filter or in its assertions.
import {
  END,
  PARK,
  PINNED,
  START,
  eventTypeFilter,
  persistentSubscriptionToAllSettingsFromDefaults,
  streamNameFilter,
  type Filter,
  type PersistentSubscriptionToAllSettings,
} from '@eventstore/db-client';
import { afterEach, describe, expect, test } from 'vitest';
import { eventually } from '#test/support/eventually.ts';
import {
  collect,
  eventOf,
  indexOf,
  linkTo,
  numberedEvents,
  positionOf,
  range,
  record,
  uniqueName,
  useEventStore,
} from './support.ts';

describe('a persistent subscription to $all', () => {
  const store = useEventStore();
  const groups: string[] = [];

  const create = async (settings: Partial<PersistentSubscriptionToAllSettings>, filter?: Filter) => {
    const name = uniqueName('all-group');
    await store.client.createPersistentSubscriptionToAll(
      name,
      persistentSubscriptionToAllSettingsFromDefaults(settings),
      filter ? { filter } : {},
    );
    groups.push(name);
    return name;
  };
  const consume = (name: string, bufferSize = 50) => {
    const subscription = store.client.subscribeToPersistentSubscriptionToAll(name, { bufferSize });
    return record(subscription, (event) => void subscription.ack(event));
  };
  const append = (stream: string, count: number, firstIndex = 0, type = 'persistent') =>
    store.client.appendToStream(stream, numberedEvents(count, type, firstIndex));

  afterEach(async () => {
    // A remaining group on $all would receive the events of every later test.
    for (const name of groups.splice(0)) await store.client.deletePersistentSubscriptionToAll(name).catch(() => {});
  });

  test('delivers history and live events of all streams, in order', async () => {
    const [one, other] = [uniqueName('persistent-one'), uniqueName('persistent-other')];
    await append(one, 2);
    await append(other, 2, 2);
    const recording = consume(await create({ startFrom: START }));
    const own = () => recording.events.filter(({ event }) => event?.streamId === one || event?.streamId === other);
    try {
      await eventually(() => own().length === 4);
      await append(one, 1, 4);
      await eventually(() => own().length === 5);
      expect(own().map(indexOf)).toEqual(range(5));
      const commits = recording.events.map(({ event, link }) => (link ?? event)?.position.commit ?? 0n);
      expect(commits).toEqual(commits.toSorted((a, b) => (a < b ? -1 : 1)));
    } finally {
      await recording.stop();
    }
  });

  test('from a position: that event is the first', async () => {
    const stream = uniqueName('persistent');
    await append(stream, 2);
    const startFrom = positionOf(await append(stream, 1, 2));
    await append(stream, 1, 3);
    const recording = consume(await create({ startFrom }, streamNameFilter({ prefixes: [stream] })));
    try {
      expect((await recording.delivered(2)).map(indexOf)).toEqual([2, 3]);
    } finally {
      await recording.stop();
    }
  });

  test('from the end: events appended after the group was created', async () => {
    const stream = uniqueName('persistent');
    await append(stream, 2);
    const recording = consume(await create({ startFrom: END }, streamNameFilter({ prefixes: [stream] })));
    try {
      await append(stream, 2, 2);
      expect((await recording.delivered(2)).map(indexOf)).toEqual([2, 3]);
    } finally {
      await recording.stop();
    }
  });

  test.each([
    ['a prefix of stream names', (name: string) => streamNameFilter({ prefixes: [name] })],
    ['a regular expression on stream names', (name: string) => streamNameFilter({ regex: `^${name}-(wanted|this)` })],
    ['a prefix of event types', (name: string) => eventTypeFilter({ prefixes: [name] })],
    ['a regular expression on event types', (name: string) => eventTypeFilter({ regex: `^${name}-w` })],
  ])('with a filter by %s delivers matching events, history and live', async (_, filterOf) => {
    const name = uniqueName('filtered');
    const wanted = `${name}-wanted`;
    const noise = `x-${name}`;
    await append(noise, 3, 100, 'noise');
    await append(wanted, 2, 0, wanted);
    await append(noise, 40, 100, 'noise');
    const recording = consume(await create({ startFrom: START }, filterOf(name)));
    try {
      await recording.delivered(2);
      await append(noise, 3, 100, 'noise');
      await append(wanted, 2, 2, wanted);
      expect((await recording.delivered(4)).map(indexOf)).toEqual([0, 1, 2, 3]);
      expect(recording.events).toHaveLength(4);
    } finally {
      await recording.stop();
    }
  });

  test('keeps its filter across an update', async () => {
    const name = uniqueName('filtered');
    const group = await create({ startFrom: END }, streamNameFilter({ prefixes: [name] }));
    await store.client.updatePersistentSubscriptionToAll(
      group,
      persistentSubscriptionToAllSettingsFromDefaults({ startFrom: END, maxRetryCount: 2 }),
    );
    const recording = consume(group);
    try {
      await recording.confirmed();
      await append(`x-${name}`, 3, 100);
      await append(name, 1);
      expect((await recording.delivered(1)).map(indexOf)).toEqual([0]);
    } finally {
      await recording.stop();
    }
  });

  test('resolves links when the group is configured to', async () => {
    const target = uniqueName('persistent-target');
    await append(target, 2);
    const stream = uniqueName('persistent');
    const group = await create({ startFrom: END, resolveLinkTos: true }, streamNameFilter({ prefixes: [stream] }));
    const recording = consume(group);
    try {
      await store.client.appendToStream(stream, linkTo(target, 1));
      const [read] = await recording.delivered(1);
      expect(read?.event).toMatchObject({ streamId: target, revision: 1n });
      expect(read?.link).toMatchObject({ streamId: stream, revision: 0n });
    } finally {
      await recording.stop();
    }
  });

  test('parks into a stream of the group, and replays from there', async () => {
    const stream = uniqueName('persistent');
    const group = await create({ startFrom: END }, streamNameFilter({ prefixes: [stream] }));
    const subscription = store.client.subscribeToPersistentSubscriptionToAll(group);
    const parked = new Set<string>();
    const recording = record(subscription, (event) => {
      const { id } = eventOf(event);
      if (parked.has(id)) return void subscription.ack(event);
      parked.add(id);
      void subscription.nack(PARK, 'later', event);
    });
    try {
      await append(stream, 3);
      await recording.delivered(3);
      await eventually(async () => {
        const { stats } = await store.client.getPersistentSubscriptionToAllInfo(group);
        expect(stats.parkedMessageCount).toBe(3n);
      });
      const links = await collect(store.client.readStream(`$persistentsubscription-$all::${group}-parked`));
      expect(links).toHaveLength(3);
      await store.client.replayParkedMessagesToAll(group);
      expect((await recording.delivered(6)).slice(3).map(indexOf).toSorted()).toEqual([0, 1, 2]);
    } finally {
      await recording.stop();
    }
  });

  test('does not deliver its own parked messages', async () => {
    // Without a filter the links in the parked stream are events of $all like any other.
    const stream = uniqueName('persistent');
    const group = await create({ startFrom: END });
    const subscription = store.client.subscribeToPersistentSubscriptionToAll(group, { bufferSize: 100 });
    const recording = record(subscription, (event) => {
      void (event.event?.streamId === stream ? subscription.nack(PARK, 'loop?', event) : subscription.ack(event));
    });
    const own = () => recording.events.filter(({ event }) => event?.streamId === stream);
    try {
      await recording.confirmed();
      await append(stream, 2);
      await eventually(() => own().length === 2);
      await eventually(async () => {
        const { stats } = await store.client.getPersistentSubscriptionToAllInfo(group);
        expect(stats.parkedMessageCount).toBe(2n);
      });
      await append(stream, 1, 2);
      await eventually(() => own().length === 3);
      const parkedStream = `$persistentsubscription-$all::${group}-parked`;
      expect(recording.events.filter(({ event }) => event?.streamId === parkedStream)).toEqual([]);
    } finally {
      await recording.stop();
    }
  });

  test('has a position as its checkpoint, and resumes from it', async () => {
    const stream = uniqueName('persistent');
    const group = await create(
      { startFrom: END, checkPointLowerBound: 1, checkPointUpperBound: 1, checkPointAfter: 100 },
      streamNameFilter({ prefixes: [stream] }),
    );
    const first = consume(group);
    const last = positionOf(await append(stream, 5));
    await first.delivered(5);
    await eventually(async () => {
      const { stats } = await store.client.getPersistentSubscriptionToAllInfo(group);
      expect(stats.lastKnownEventPosition).toEqual(last);
      expect(stats.lastCheckpointedEventPosition?.commit).toBeGreaterThanOrEqual(last.commit);
      expect('lastKnownEventRevision' in stats).toBe(false);
    });
    await first.stop();
    await append(stream, 2, 5);
    const second = consume(group);
    try {
      expect((await second.delivered(2)).map(indexOf)).toEqual([5, 6]);
    } finally {
      await second.stop();
    }
  });

  test('with pinned keeps each stream at one consumer', async () => {
    const name = uniqueName('pinned');
    const group = await create(
      { startFrom: END, consumerStrategyName: PINNED },
      streamNameFilter({ prefixes: [name] }),
    );
    const consumers = [consume(group, 200), consume(group, 200)];
    const streams = range(10).map((n) => `${name}-${n}`);
    try {
      await Promise.all(consumers.map((consumer) => consumer.confirmed()));
      for (const round of range(4)) for (const stream of streams) await append(stream, 1, round);
      await eventually(() => consumers.flatMap(({ events }) => events).length === 40);
      for (const stream of streams) {
        const shares = consumers.map(({ events }) => events.filter(({ event }) => event?.streamId === stream).length);
        expect(shares.toSorted((a, b) => a - b)).toEqual([0, 4]);
      }
    } finally {
      await Promise.all(consumers.map((consumer) => consumer.stop()));
    }
  });
});
