import {
  PARK,
  PersistentSubscriptionDroppedError,
  START,
  persistentSubscriptionToStreamSettingsFromDefaults,
  type PersistentSubscriptionToStreamResolvedEvent,
  type PersistentSubscriptionToStreamSettings,
} from '@eventstore/db-client';
import { describe, expect, test } from 'vitest';
import { eventually } from '#test/support/eventually.ts';
import { collect, indexOf, linkTo, numberedEvents, range, record, uniqueName, useEventStore } from './support.ts';

describe('parked events', () => {
  const store = useEventStore();

  /** A group whose consumer parks the events of `refuse` at their first delivery, and acknowledges the rest. */
  const parking = async (
    count: number,
    refuse: (index: number) => boolean,
    settings: Partial<PersistentSubscriptionToStreamSettings> = {},
  ) => {
    const stream = uniqueName('parked');
    const name = uniqueName('group');
    await store.client.appendToStream(stream, numberedEvents(count));
    await store.client.createPersistentSubscriptionToStream(
      stream,
      name,
      persistentSubscriptionToStreamSettingsFromDefaults({ startFrom: START, ...settings }),
    );
    const seen = new Set<number>();
    const subscription = store.client.subscribeToPersistentSubscriptionToStream(stream, name);
    const handle = async (event: PersistentSubscriptionToStreamResolvedEvent) => {
      const first = !seen.has(indexOf(event));
      seen.add(indexOf(event));
      if (first && refuse(indexOf(event))) await subscription.nack(PARK, 'because', event);
      else await subscription.ack(event);
    };
    const recording = record(subscription, (event) => void handle(event));
    const info = () => store.client.getPersistentSubscriptionToStreamInfo(stream, name);
    const parked = (expected: number) =>
      eventually(async () => expect((await info()).stats.parkedMessageCount).toBe(BigInt(expected)));
    await recording.delivered(count);
    const replay = (stopAt?: number) =>
      store.client.replayParkedMessagesToStream(stream, name, stopAt === undefined ? {} : { stopAt });
    return {
      stream,
      name,
      recording,
      info,
      parked,
      replay,
      parkedStream: `$persistentsubscription-${stream}::${name}-parked`,
    };
  };

  test('are links in a stream of the group, with the reason', async () => {
    const { stream, recording, parked, parkedStream } = await parking(5, (index) => index % 2 === 1);
    try {
      await parked(2);
      const links = await collect(store.client.readStream(parkedStream));
      const link = (revision: number) => `${revision}@${stream}`;
      expect(links.map(({ event }) => Buffer.from(event?.data as Uint8Array).toString()).toSorted()).toEqual([
        link(1),
        link(3),
      ]);
      expect(JSON.stringify(links[0]?.event?.metadata)).toContain('because');
      const resolved = await collect(store.client.readStream(parkedStream, { resolveLinkTos: true }));
      expect(resolved.map(indexOf).toSorted()).toEqual([1, 3]);
    } finally {
      await recording.stop();
    }
  });

  test('are not delivered again without a replay, and count as handled for the checkpoint', async () => {
    const { recording, info, parked } = await parking(6, (index) => index < 3, {
      checkPointLowerBound: 1,
      checkPointUpperBound: 1,
      checkPointAfter: 100,
    });
    try {
      await parked(3);
      await eventually(async () => expect((await info()).stats.lastCheckpointedEventRevision).toBe(5n));
      expect(recording.events).toHaveLength(6);
      expect((await info()).stats.totalInFlightMessages).toBe(0);
    } finally {
      await recording.stop();
    }
  });

  test('are delivered again by a replay, and then no longer parked', async () => {
    const { recording, parked, replay, info } = await parking(6, (index) => index > 2);
    try {
      await parked(3);
      await replay();
      const again = (await recording.delivered(9)).slice(6);
      expect(again.map(indexOf).toSorted()).toEqual([3, 4, 5]);
      await parked(0);
      await eventually(async () => expect((await info()).stats.totalInFlightMessages).toBe(0));
      expect(recording.events).toHaveLength(9);
    } finally {
      await recording.stop();
    }
  });

  test('are delivered again only up to the stop of the replay', async () => {
    const { recording, parked, replay } = await parking(10, () => true);
    try {
      await parked(10);
      await replay(4);
      await recording.delivered(14);
      await parked(6);
      await replay();
      await recording.delivered(20);
      await parked(0);
      const again = recording.events.slice(10).map(indexOf);
      expect(again.toSorted((a, b) => a - b)).toEqual(range(10));
    } finally {
      await recording.stop();
    }
  });

  test('a replay without parked events does nothing', async () => {
    const { recording, replay, parked, stream } = await parking(2, () => false);
    try {
      await replay();
      await store.client.appendToStream(stream, numberedEvents(1, 'after', 2));
      expect((await recording.delivered(3)).map(indexOf)).toEqual([0, 1, 2]);
      await parked(0);
    } finally {
      await recording.stop();
    }
  });

  test('can be parked again after a replay', async () => {
    const stream = uniqueName('parked');
    const name = uniqueName('group');
    await store.client.appendToStream(stream, numberedEvents(2));
    await store.client.createPersistentSubscriptionToStream(
      stream,
      name,
      persistentSubscriptionToStreamSettingsFromDefaults({ startFrom: START }),
    );
    const subscription = store.client.subscribeToPersistentSubscriptionToStream(stream, name);
    const recording = record(subscription, (event) => void subscription.nack(PARK, 'again', event));
    const parked = (expected: bigint) =>
      eventually(async () => {
        const { stats } = await store.client.getPersistentSubscriptionToStreamInfo(stream, name);
        expect(stats.parkedMessageCount).toBe(expected);
      });
    try {
      for (const round of range(3)) {
        await recording.delivered(2 + round * 2);
        await parked(2n);
        await store.client.replayParkedMessagesToStream(stream, name);
      }
      const read = await recording.delivered(8);
      expect(read.map((event) => event.event?.streamId)).toEqual(range(8).map(() => stream));
    } finally {
      await recording.stop();
    }
  });

  test('that are links are parked as their target', async () => {
    const target = uniqueName('parked-target');
    const stream = uniqueName('parked');
    const name = uniqueName('group');
    await store.client.appendToStream(target, numberedEvents(3));
    await store.client.appendToStream(stream, linkTo(target, 2));
    await store.client.createPersistentSubscriptionToStream(
      stream,
      name,
      persistentSubscriptionToStreamSettingsFromDefaults({ startFrom: START, resolveLinkTos: true }),
    );
    const subscription = store.client.subscribeToPersistentSubscriptionToStream(stream, name);
    const recording = record(subscription, (event) => void subscription.nack(PARK, 'link', event));
    try {
      await recording.delivered(1);
      await eventually(async () => {
        const links = await collect(store.client.readStream(`$persistentsubscription-${stream}::${name}-parked`));
        expect(links.map(({ event }) => Buffer.from(event?.data as Uint8Array).toString())).toEqual([`2@${target}`]);
      });
    } finally {
      await recording.stop();
    }
  });

  test('are deleted with their group', async () => {
    const { stream, name, recording, parked } = await parking(3, () => true);
    await parked(3);
    await recording.stop();
    await store.client.deletePersistentSubscriptionToStream(stream, name);
    await store.client.createPersistentSubscriptionToStream(
      stream,
      name,
      persistentSubscriptionToStreamSettingsFromDefaults({ startFrom: START }),
    );
    await eventually(async () => {
      const { stats } = await store.client.getPersistentSubscriptionToStreamInfo(stream, name);
      expect(stats.parkedMessageCount).toBe(0n);
    });
  });
});

// The restart affects every group of the server, so run files one by one on a
// shared server. In the file of the parked events, because they must survive it.
describe('a restart of the subsystem', () => {
  const store = useEventStore();

  test('drops consumers, keeps groups, resumes from the checkpoint and keeps parked events', async () => {
    const stream = uniqueName('restart');
    const name = uniqueName('group');
    const settings = persistentSubscriptionToStreamSettingsFromDefaults({
      startFrom: START,
      checkPointLowerBound: 1,
      checkPointUpperBound: 1,
      checkPointAfter: 100,
    });
    await store.client.appendToStream(stream, numberedEvents(10));
    await store.client.createPersistentSubscriptionToStream(stream, name, settings);
    const info = () => store.client.getPersistentSubscriptionToStreamInfo(stream, name);
    const subscription = store.client.subscribeToPersistentSubscriptionToStream(stream, name);
    const first = record(subscription);
    const read = await first.delivered(10);
    await subscription.ack(...read.slice(0, 4));
    if (read[4]) await subscription.nack(PARK, 'for later', read[4]);
    await eventually(async () => {
      expect((await info()).stats).toMatchObject({ lastCheckpointedEventRevision: 4n, parkedMessageCount: 1n });
    });

    await store.client.restartPersistentSubscriptionSubsystem();
    expect(await first.failed()).toBeInstanceOf(PersistentSubscriptionDroppedError);

    await eventually(async () => expect((await info()).settings).toEqual(settings));
    const second = await eventually(async () => {
      const recording = record(
        store.client.subscribeToPersistentSubscriptionToStream(stream, name, { bufferSize: 20 }),
      );
      await recording.confirmed();
      return recording;
    });
    try {
      expect((await second.delivered(5)).map(indexOf)).toEqual([5, 6, 7, 8, 9]);
      await eventually(async () => expect((await info()).stats.parkedMessageCount).toBe(1n));
      await store.client.replayParkedMessagesToStream(stream, name);
      expect((await second.delivered(6)).map(indexOf)).toEqual([5, 6, 7, 8, 9, 4]);
    } finally {
      await second.stop();
    }
  });
});
