// Managing consumer groups: existence, settings, and errors for missing groups.
import {
  DISPATCH_TO_SINGLE,
  END,
  PINNED,
  PersistentSubscriptionDoesNotExistError,
  PersistentSubscriptionDroppedError,
  PersistentSubscriptionExistsError,
  ROUND_ROBIN,
  START,
  UNBOUNDED,
  eventTypeFilter,
  persistentSubscriptionToAllSettingsFromDefaults,
  persistentSubscriptionToStreamSettingsFromDefaults,
  streamNameFilter,
} from '@eventstore/db-client';
import { describe, expect, test } from 'vitest';
import { eventually } from '#test/support/eventually.ts';
import { indexOf, numberedEvents, positionOf, record, rejectionOf, uniqueName, useEventStore } from './support.ts';

const toStream = persistentSubscriptionToStreamSettingsFromDefaults;
const toAll = persistentSubscriptionToAllSettingsFromDefaults;

describe('groups of persistent subscriptions to a stream', () => {
  const store = useEventStore();
  const names = () => ({ stream: uniqueName('group-stream'), group: uniqueName('group') });
  const doesNotExist = async (promise: Promise<unknown>, stream: string, group: string) => {
    const error = await rejectionOf(promise);
    expect(error).toBeInstanceOf(PersistentSubscriptionDoesNotExistError);
    expect(error).toMatchObject({ streamName: stream, groupName: group });
  };

  test.each([
    ['the defaults', {}],
    ['from start', { startFrom: START }],
    ['from a revision', { startFrom: 123n }],
    ['from the end', { startFrom: END }],
    [
      'every setting changed',
      {
        startFrom: 7n,
        resolveLinkTos: true,
        extraStatistics: true,
        messageTimeout: 12_000,
        maxRetryCount: 3,
        checkPointAfter: 1_500,
        checkPointLowerBound: 4,
        checkPointUpperBound: 40,
        maxSubscriberCount: 5,
        liveBufferSize: 60,
        readBatchSize: 12,
        historyBufferSize: 70,
        consumerStrategyName: PINNED,
      },
    ],
    ['dispatching to a single consumer', { consumerStrategyName: DISPATCH_TO_SINGLE }],
    ['without a limit of consumers', { maxSubscriberCount: UNBOUNDED }],
  ] as const)('a group keeps its settings: %s', async (_, changes) => {
    const { stream, group } = names();
    const settings = toStream(changes);
    await store.client.createPersistentSubscriptionToStream(stream, group, settings);
    const info = await store.client.getPersistentSubscriptionToStreamInfo(stream, group);
    expect(info).toMatchObject({ eventSource: stream, groupName: group, connections: [] });
    expect(info.settings).toEqual(settings);
  });

  test('a new group has no progress', async () => {
    const { stream, group } = names();
    await store.client.createPersistentSubscriptionToStream(stream, group, toStream());
    const { stats, status } = await store.client.getPersistentSubscriptionToStreamInfo(stream, group);
    expect(status).not.toBe('');
    expect(stats).toMatchObject({
      totalItems: 0n,
      totalInFlightMessages: 0,
      outstandingMessagesCount: 0,
      parkedMessageCount: 0n,
      retryBufferCount: 0,
      lastKnownEventRevision: undefined,
      lastCheckpointedEventRevision: undefined,
    });
  });

  test('a group can be created before its stream, and with names of any characters', async () => {
    const stream = `${uniqueName('group')}/어학연구소 ?x=1 ด้้้`;
    const group = `${uniqueName('group')} ヽ༼ຈل͜ຈ༽ﾉ ::x`;
    await store.client.createPersistentSubscriptionToStream(stream, group, toStream({ startFrom: START }));
    await store.client.appendToStream(stream, numberedEvents(1));
    const recording = record(store.client.subscribeToPersistentSubscriptionToStream(stream, group));
    try {
      expect((await recording.delivered(1)).map(indexOf)).toEqual([0]);
      const info = await store.client.getPersistentSubscriptionToStreamInfo(stream, group);
      expect(info).toMatchObject({ eventSource: stream, groupName: group });
    } finally {
      await recording.stop();
    }
  });

  test('a group that exists cannot be created again', async () => {
    const { stream, group } = names();
    await store.client.createPersistentSubscriptionToStream(stream, group, toStream());
    const error = await rejectionOf(store.client.createPersistentSubscriptionToStream(stream, group, toStream()));
    expect(error).toBeInstanceOf(PersistentSubscriptionExistsError);
    expect(error).toMatchObject({ streamName: stream, groupName: group });
  });

  test('of racing creations exactly one succeeds', async () => {
    const { stream, group } = names();
    const outcomes = await Promise.allSettled(
      [1, 2, 3, 4].map(() => store.client.createPersistentSubscriptionToStream(stream, group, toStream())),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  test('the same group name can be used on another stream', async () => {
    const { stream, group } = names();
    await store.client.createPersistentSubscriptionToStream(stream, group, toStream());
    await store.client.createPersistentSubscriptionToStream(`${stream}-2`, group, toStream());
    await store.client.deletePersistentSubscriptionToStream(stream, group);
    const info = await store.client.getPersistentSubscriptionToStreamInfo(`${stream}-2`, group);
    expect(info.groupName).toBe(group);
  });

  test('an update replaces the settings', async () => {
    const { stream, group } = names();
    await store.client.createPersistentSubscriptionToStream(stream, group, toStream({ startFrom: START }));
    const settings = toStream({ startFrom: 123n, checkPointLowerBound: 12, maxSubscriberCount: 200 });
    await store.client.updatePersistentSubscriptionToStream(stream, group, settings);
    expect((await store.client.getPersistentSubscriptionToStreamInfo(stream, group)).settings).toEqual(settings);
  });

  test('an update drops the consumers', async () => {
    const { stream, group } = names();
    await store.client.createPersistentSubscriptionToStream(stream, group, toStream());
    const recording = record(store.client.subscribeToPersistentSubscriptionToStream(stream, group));
    await recording.confirmed();
    await store.client.updatePersistentSubscriptionToStream(stream, group, toStream({ maxRetryCount: 1 }));
    const error = await recording.failed();
    expect(error).toBeInstanceOf(PersistentSubscriptionDroppedError);
    expect(error).toMatchObject({ streamName: stream, groupName: group });
  });

  test('deleting drops the consumers', async () => {
    const { stream, group } = names();
    await store.client.createPersistentSubscriptionToStream(stream, group, toStream());
    const recording = record(store.client.subscribeToPersistentSubscriptionToStream(stream, group));
    await recording.confirmed();
    await store.client.deletePersistentSubscriptionToStream(stream, group);
    expect(await recording.failed()).toBeInstanceOf(PersistentSubscriptionDroppedError);
  });

  test('a deleted group no longer exists, and a new one of its name starts from the beginning', async () => {
    const { stream, group } = names();
    const settings = toStream({ startFrom: START, checkPointLowerBound: 1, checkPointUpperBound: 1 });
    await store.client.appendToStream(stream, numberedEvents(3));
    await store.client.createPersistentSubscriptionToStream(stream, group, settings);
    const first = record(store.client.subscribeToPersistentSubscriptionToStream(stream, group));
    const events = await first.delivered(3);
    await store.client.getPersistentSubscriptionToStreamInfo(stream, group);
    await first.stop();
    expect(events).toHaveLength(3);
    await store.client.deletePersistentSubscriptionToStream(stream, group);
    await doesNotExist(store.client.getPersistentSubscriptionToStreamInfo(stream, group), stream, group);
    await store.client.createPersistentSubscriptionToStream(stream, group, settings);
    const second = record(store.client.subscribeToPersistentSubscriptionToStream(stream, group));
    try {
      const again = await second.delivered(3);
      expect(again.map(indexOf)).toEqual([0, 1, 2]);
      expect(again.map(({ retryCount }) => retryCount)).toEqual([0, 0, 0]);
    } finally {
      await second.stop();
    }
  });

  test('update, delete, info, replay and subscription of a missing group fail with "does not exist"', async () => {
    const { stream, group } = names();
    const { client } = store;
    await doesNotExist(client.updatePersistentSubscriptionToStream(stream, group, toStream()), stream, group);
    await doesNotExist(client.deletePersistentSubscriptionToStream(stream, group), stream, group);
    await doesNotExist(client.getPersistentSubscriptionToStreamInfo(stream, group), stream, group);
    await doesNotExist(client.replayParkedMessagesToStream(stream, group), stream, group);
    const failed = await record(client.subscribeToPersistentSubscriptionToStream(stream, group)).failed();
    expect(failed).toBeInstanceOf(PersistentSubscriptionDoesNotExistError);
    expect(failed).toMatchObject({ streamName: stream, groupName: group });
  });

  test('the groups of a stream are listed', async () => {
    const { stream } = names();
    const settings = [
      toStream({ startFrom: START, extraStatistics: true }),
      toStream({ maxRetryCount: 12 }),
      toStream(),
    ];
    const created = settings.map((one, n) => ({ group: uniqueName(`group-${n}`), settings: one }));
    for (const one of created) await store.client.createPersistentSubscriptionToStream(stream, one.group, one.settings);
    await store.client.createPersistentSubscriptionToStream(`${stream}-2`, uniqueName('group'), toStream());
    const list = await store.client.listPersistentSubscriptionsToStream(stream);
    expect(list).toHaveLength(3);
    expect(list.every(({ eventSource }) => eventSource === stream)).toBe(true);
    const settingsOf = new Map(list.map((info) => [info.groupName, info.settings]));
    for (const one of created) expect(settingsOf.get(one.group)).toEqual(one.settings);
  });

  test('listing a stream without groups fails with "does not exist"', async () => {
    const stream = uniqueName('group-stream');
    const error = await rejectionOf(store.client.listPersistentSubscriptionsToStream(stream));
    expect(error).toBeInstanceOf(PersistentSubscriptionDoesNotExistError);
    expect(error).toMatchObject({ streamName: stream });
  });

  test('all groups of the server are listed, including those to $all', async () => {
    const { stream, group } = names();
    const allGroup = uniqueName('group');
    await store.client.createPersistentSubscriptionToStream(stream, group, toStream());
    await store.client.createPersistentSubscriptionToAll(allGroup, toAll());
    const sources = (await store.client.listAllPersistentSubscriptions()).map((info) => [
      info.eventSource,
      info.groupName,
    ]);
    expect(sources).toContainEqual([stream, group]);
    expect(sources).toContainEqual(['$all', allGroup]);
    await store.client.deletePersistentSubscriptionToAll(allGroup);
  });

  test('info describes the consumers, with statistics when the group enables them', async () => {
    const { stream, group } = names();
    await store.client.createPersistentSubscriptionToStream(
      stream,
      group,
      toStream({ startFrom: START, extraStatistics: true }),
    );
    await store.client.appendToStream(stream, numberedEvents(6));
    const subscription = store.client.subscribeToPersistentSubscriptionToStream(stream, group, { bufferSize: 4 });
    const recording = record(subscription);
    try {
      const [event] = await recording.delivered(4);
      await eventually(async () => {
        const { connections, stats } = await store.client.getPersistentSubscriptionToStreamInfo(stream, group);
        expect(connections).toHaveLength(1);
        expect(connections[0]).toMatchObject({ inFlightMessages: 4, availableSlots: 0, totalItems: 4n });
        expect(connections[0]?.connectionName).toBe(store.client.connectionName);
        expect(stats).toMatchObject({ totalInFlightMessages: 4, outstandingMessagesCount: 4, totalItems: 4n });
      });
      if (event) await subscription.ack(event);
      await eventually(async () => {
        const { connections, stats } = await store.client.getPersistentSubscriptionToStreamInfo(stream, group);
        expect(connections[0]?.totalItems).toBe(5n);
        expect(stats.lastKnownEventRevision).toBeTypeOf('bigint');
        const statistics = connections[0]?.extraStatistics;
        expect([...(statistics?.keys() ?? [])]).toEqual(
          expect.arrayContaining([
            'mean',
            'median',
            'fastest',
            'highest',
            'quintile 1',
            'quintile 3',
            'quintile 5',
            '90%',
            '99%',
            'highest',
          ]),
        );
      });
    } finally {
      await recording.stop();
    }
    await eventually(async () => {
      const info = await store.client.getPersistentSubscriptionToStreamInfo(stream, group);
      expect(info.connections).toEqual([]);
    });
  });
});

describe('groups of persistent subscriptions to $all', () => {
  const store = useEventStore();

  test('a group keeps its settings: from start, end and a position', async () => {
    const position = positionOf(await store.client.appendToStream(uniqueName('group'), numberedEvents(1)));
    for (const startFrom of [START, END, position] as const) {
      const group = uniqueName('group');
      const settings = toAll({ startFrom, maxRetryCount: 4, consumerStrategyName: ROUND_ROBIN });
      await store.client.createPersistentSubscriptionToAll(group, settings);
      const info = await store.client.getPersistentSubscriptionToAllInfo(group);
      expect(info).toMatchObject({ eventSource: '$all', groupName: group });
      expect(info.settings).toEqual(settings);
      await store.client.deletePersistentSubscriptionToAll(group);
    }
  });

  test('a group with a filter can be created, updated, listed and deleted', async () => {
    const group = uniqueName('group');
    await store.client.createPersistentSubscriptionToAll(group, toAll(), {
      filter: eventTypeFilter({ prefixes: ['x'] }),
    });
    const settings = toAll({ startFrom: START, messageTimeout: 5_000 });
    await store.client.updatePersistentSubscriptionToAll(group, settings);
    const listed = (await store.client.listPersistentSubscriptionsToAll()).find(({ groupName }) => groupName === group);
    expect(listed?.settings).toEqual(settings);
    await store.client.deletePersistentSubscriptionToAll(group);
    const error = await rejectionOf(store.client.getPersistentSubscriptionToAllInfo(group));
    expect(error).toBeInstanceOf(PersistentSubscriptionDoesNotExistError);
  });

  test('a group that exists cannot be created again', async () => {
    const group = uniqueName('group');
    await store.client.createPersistentSubscriptionToAll(group, toAll());
    const error = await rejectionOf(
      store.client.createPersistentSubscriptionToAll(group, toAll(), { filter: streamNameFilter({ regex: 'x' }) }),
    );
    expect(error).toBeInstanceOf(PersistentSubscriptionExistsError);
    expect(error).toMatchObject({ streamName: '$all', groupName: group });
    await store.client.deletePersistentSubscriptionToAll(group);
  });

  test('update, delete, info, replay and subscription of a missing group fail with "does not exist"', async () => {
    const group = uniqueName('group');
    const { client } = store;
    const attempts = [
      client.updatePersistentSubscriptionToAll(group, toAll()),
      client.deletePersistentSubscriptionToAll(group),
      client.getPersistentSubscriptionToAllInfo(group),
      client.replayParkedMessagesToAll(group),
    ];
    for (const error of [
      ...(await Promise.all(attempts.map(rejectionOf))),
      await record(client.subscribeToPersistentSubscriptionToAll(group)).failed(),
    ]) {
      expect(error).toBeInstanceOf(PersistentSubscriptionDoesNotExistError);
      expect(error).toMatchObject({ streamName: '$all', groupName: group });
    }
  });
});
