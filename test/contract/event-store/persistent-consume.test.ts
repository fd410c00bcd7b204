// Consuming from a group: delivery, links, strategies.
import {
  DISPATCH_TO_SINGLE,
  END,
  PINNED,
  PersistentSubscriptionMaximumSubscribersReachedError,
  RETRY,
  ROUND_ROBIN,
  START,
  persistentSubscriptionToStreamSettingsFromDefaults,
} from '@eventstore/db-client';
import { describe, expect, test } from 'vitest';
import { eventually } from '#test/support/eventually.ts';
import { useGroups } from './persistent-group.ts';
import { indexOf, linkTo, numberedEvents, range, record, uniqueName } from './support.ts';

describe('a persistent subscription to a stream', () => {
  const { store, group } = useGroups();

  describe('delivers', () => {
    test('is confirmed with the name of stream and group, which clients of other languages expect', async () => {
      const { stream, name, connect } = await group(1);
      const { subscription, recording } = connect();
      await recording.delivered(1);
      expect(subscription).toMatchObject({ id: `${stream}::${name}` });
      await subscription.unsubscribe();
    });

    test('from start: history, then new events, in order', async () => {
      const { consume, append } = await group(20);
      const recording = consume();
      try {
        await recording.delivered(20);
        await append(4, 20);
        expect((await recording.delivered(24)).map(indexOf)).toEqual(range(24));
        expect(recording.signals[0]).toBe('confirmation');
        expect(recording.signals.filter((signal) => signal === 'confirmation')).toHaveLength(1);
        expect(recording.events.every(({ retryCount }) => retryCount === 0)).toBe(true);
      } finally {
        await recording.stop();
      }
    });

    test('from a revision: that event is the first', async () => {
      const { consume, append } = await group(4, { startFrom: 1n });
      const recording = consume();
      try {
        await append(2, 4);
        expect((await recording.delivered(5)).map(indexOf)).toEqual([1, 2, 3, 4, 5]);
      } finally {
        await recording.stop();
      }
    });

    test('from the end: events appended after the group was created', async () => {
      const { consume, append } = await group(4, { startFrom: END });
      await append(2, 4);
      const recording = consume();
      try {
        await append(2, 6);
        expect((await recording.delivered(4)).map(indexOf)).toEqual([4, 5, 6, 7]);
      } finally {
        await recording.stop();
      }
    });

    test('a stream that does not exist yet, from its first event on', async () => {
      const { consume, append } = await group(0);
      const recording = consume();
      try {
        await recording.confirmed();
        await append(3, 0);
        expect((await recording.delivered(3)).map(indexOf)).toEqual([0, 1, 2]);
      } finally {
        await recording.stop();
      }
    });

    test('more events than its buffers hold, complete and in order', async () => {
      const { consume, append } = await group(300, { liveBufferSize: 20, historyBufferSize: 30, readBatchSize: 10 });
      const recording = consume(5);
      try {
        for (const round of range(10)) await append(30, 300 + round * 30);
        expect((await recording.delivered(600)).map(indexOf)).toEqual(range(600));
      } finally {
        await recording.stop();
      }
    });

    test('the same events as a read', async () => {
      const { consume, stream } = await group(2);
      const recording = consume();
      try {
        const delivered = await recording.delivered(2);
        const read = [];
        for await (const { event } of store.client.readStream(stream)) read.push(event);
        expect(delivered.map(({ event }) => event)).toEqual(read);
      } finally {
        await recording.stop();
      }
    });

    test('at most as many unacknowledged events as the consumer has room for', async () => {
      const { connect, info } = await group(10);
      const { subscription, recording } = connect(3);
      try {
        await recording.delivered(3);
        await eventually(async () => {
          expect((await info()).stats).toMatchObject({ totalInFlightMessages: 3 });
        });
        expect(recording.events).toHaveLength(3);
        // Out of order: the third frees a slot as well as the first.
        const [first, , third] = recording.events;
        if (third) await subscription.ack(third);
        await recording.delivered(4);
        if (first) await subscription.ack(first);
        await recording.delivered(5);
        expect((await info()).stats).toMatchObject({ totalInFlightMessages: 3 });
        expect(recording.events.map(indexOf)).toEqual(range(5));
      } finally {
        await recording.stop();
      }
    });

    test('several acknowledgements in one message', async () => {
      const { connect } = await group(9);
      const { subscription, recording } = connect(3);
      try {
        await subscription.ack(...(await recording.delivered(3)));
        await subscription.ack(...(await recording.delivered(6)).slice(3));
        expect((await recording.delivered(9)).map(indexOf)).toEqual(range(9));
      } finally {
        await recording.stop();
      }
    });
  });

  describe('links', () => {
    const linked = async (resolveLinkTos: boolean) => {
      const target = uniqueName('persistent-target');
      await store.client.appendToStream(target, numberedEvents(4));
      const created = await group(0, { resolveLinkTos });
      await store.client.appendToStream(
        created.stream,
        range(4).map((n) => linkTo(target, n)),
      );
      return { ...created, target };
    };

    test('are resolved when the group is configured to, and acknowledged by the id of the link', async () => {
      const { connect, info, target, stream } = await linked(true);
      const { subscription, recording } = connect(2);
      try {
        await subscription.ack(...(await recording.delivered(2)));
        const read = await recording.delivered(4);
        expect(read.map(({ event, link }) => [event?.streamId, link?.streamId, link?.revision])).toEqual(
          range(4).map((n) => [target, stream, BigInt(n)]),
        );
        await subscription.ack(...read.slice(2));
        await eventually(async () => expect((await info()).stats.totalInFlightMessages).toBe(0));
      } finally {
        await recording.stop();
      }
    });

    test('are otherwise delivered unresolved', async () => {
      const { consume } = await linked(false);
      const recording = consume(2);
      try {
        const read = await recording.delivered(4);
        expect(read.map(({ event, link }) => [event?.type, link])).toEqual(range(4).map(() => ['$>', undefined]));
      } finally {
        await recording.stop();
      }
    });
  });

  describe('several consumers', () => {
    test('with round robin receive equal numbers of events, each event once', async () => {
      const { consume, append } = await group(0, { consumerStrategyName: ROUND_ROBIN });
      const consumers = [consume(50), consume(50), consume(50)];
      try {
        await Promise.all(consumers.map((consumer) => consumer.confirmed()));
        await append(30, 0);
        const shares = await Promise.all(consumers.map((consumer) => consumer.delivered(10)));
        expect(shares.flatMap((share) => share.map(indexOf)).toSorted((a, b) => a - b)).toEqual(range(30));
        expect(consumers.map(({ events }) => events.length)).toEqual([10, 10, 10]);
      } finally {
        await Promise.all(consumers.map((consumer) => consumer.stop()));
      }
    });

    test('with dispatch to single the first receives all until it is full, then the next', async () => {
      const { connect, append } = await group(0, { consumerStrategyName: DISPATCH_TO_SINGLE });
      const consumers = [connect(4), connect(4)];
      try {
        await Promise.all(consumers.map(({ recording }) => recording.confirmed()));
        await append(6, 0);
        await eventually(() => consumers.flatMap(({ recording }) => recording.events).length === 6);
        const shares = consumers
          .map(({ recording }) => recording.events.map(indexOf))
          .toSorted((a, b) => b.length - a.length);
        expect(shares).toEqual([
          [0, 1, 2, 3],
          [4, 5],
        ]);
      } finally {
        await Promise.all(consumers.map(({ recording }) => recording.stop()));
      }
    });

    test('with pinned all events of one stream go to one of them', async () => {
      const { consume, append } = await group(0, { consumerStrategyName: PINNED });
      const consumers = [consume(50), consume(50), consume(50)];
      try {
        await Promise.all(consumers.map((consumer) => consumer.confirmed()));
        await append(20, 0);
        await eventually(() => consumers.flatMap(({ events }) => events).length === 20);
        expect(consumers.map(({ events }) => events.length).toSorted((a, b) => a - b)).toEqual([0, 0, 20]);
      } finally {
        await Promise.all(consumers.map((consumer) => consumer.stop()));
      }
    });

    test('with pinned linked events are pinned by the stream of the event that is linked', async () => {
      const { stream, consume } = await group(0, { consumerStrategyName: PINNED, resolveLinkTos: true });
      const targets = range(8).map(() => uniqueName('pinned'));
      const consumers = [consume(100), consume(100)];
      try {
        await Promise.all(consumers.map((consumer) => consumer.confirmed()));
        for (const target of targets) await store.client.appendToStream(target, numberedEvents(5));
        for (const revision of range(5)) {
          await store.client.appendToStream(
            stream,
            targets.map((target) => linkTo(target, revision)),
          );
        }
        await eventually(() => consumers.flatMap(({ events }) => events).length === 40);
        for (const target of targets) {
          const counts = consumers.map(({ events }) => events.filter(({ event }) => event?.streamId === target).length);
          expect(counts.toSorted((a, b) => a - b)).toEqual([0, 5]);
        }
      } finally {
        await Promise.all(consumers.map((consumer) => consumer.stop()));
      }
    });

    test('are refused above the maximum of the group, until one leaves', async () => {
      const { stream, name, connect } = await group(0, { maxSubscriberCount: 1 });
      const first = connect();
      await first.recording.confirmed();
      const refused = await connect().recording.failed();
      expect(refused).toBeInstanceOf(PersistentSubscriptionMaximumSubscribersReachedError);
      expect(refused).toMatchObject({ streamName: stream, groupName: name });
      await first.recording.stop();
      await eventually(async () => {
        const next = connect().recording;
        try {
          await next.confirmed();
        } finally {
          await next.stop();
        }
      });
    });

    test('can connect and disconnect: every event is handled in the end', async () => {
      const { connect, info } = await group(300, { maxRetryCount: 1000 });
      const handled = new Set<number>();
      // A consumer handles a part, refuses a part and keeps a part; when it can get no more it leaves with what it kept.
      for (const round of range(12)) {
        let kept = 0;
        const { recording, subscription } = connect(8, async (event) => {
          const fate = (indexOf(event) + event.retryCount + round) % 3;
          if (fate === 0) await subscription.nack(RETRY, 'later', event);
          if (fate === 1) {
            handled.add(indexOf(event));
            await subscription.ack(event);
          }
          if (fate === 2) kept++;
        });
        await eventually(() => kept === 8 || kept === 300 - handled.size);
        await recording.stop();
      }
      expect(handled.size).toBeGreaterThan(0);
      const { recording, subscription } = connect(50, async (event) => {
        handled.add(indexOf(event));
        await subscription.ack(event);
      });
      try {
        await eventually(() => expect([...handled].toSorted((a, b) => a - b)).toEqual(range(300)));
        await eventually(async () => {
          expect((await info()).stats).toMatchObject({
            totalInFlightMessages: 0,
            retryBufferCount: 0,
            parkedMessageCount: 0n,
          });
        });
      } finally {
        await recording.stop();
      }
    });

    test('two groups on one stream each receive all events', async () => {
      const one = await group(5);
      const other = uniqueName('group');
      await store.client.createPersistentSubscriptionToStream(
        one.stream,
        other,
        persistentSubscriptionToStreamSettingsFromDefaults({ startFrom: START }),
      );
      const recordings = [
        one.consume(),
        record(store.client.subscribeToPersistentSubscriptionToStream(one.stream, other)),
      ];
      try {
        for (const recording of recordings) expect((await recording.delivered(5)).map(indexOf)).toEqual(range(5));
      } finally {
        await Promise.all(recordings.map((recording) => recording.stop()));
      }
    });
  });
});
