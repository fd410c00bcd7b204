import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import {
  comparePositions,
  connectEventStore,
  type FeedOptions,
  type ReadCheckpoints,
  type StoredEvent,
} from '#libs/platform/eventstore/index.ts';
import {
  KafkaConnection,
  KafkaEventFeed,
  LogMessages,
  logTopics,
  type Refusal,
  Relay,
} from '#libs/platform/kafka/index.ts';
import { decodeCheckpoint } from '#libs/platform/kafka/relay-checkpoint.ts';
import { silentLog } from '#libs/platform/lifecycle/index.ts';
import { startTestEventStore } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { KAFKA_START_MS, startTestKafkaProcess, type TestKafkaProcess } from '#test/support/kafka/broker.ts';
import { describeGroup } from '#test/support/kafka/group.ts';
import { logMetadata } from '#test/support/log-events.ts';
import { describePartitionedFeed } from './partitioned.contract.ts';
import { SavedCheckpoints, Subscriber } from './subscriber.ts';

const messages = new LogMessages('a secret of this test only');
const DELIVERY_MS = 120_000;
/** Longer than a broker takes to come back on a busy machine. */
const LOST_AFTER_MS = 600_000;
const WAIT = { timeoutMs: DELIVERY_MS, everyMs: 20 };

let broker: TestKafkaProcess;
beforeAll(async () => {
  broker = await startTestKafkaProcess();
}, KAFKA_START_MS);
afterAll(() => broker?.stop());

describePartitionedFeed(
  'Kafka',
  async () => {
    const server = await startTestEventStore();
    const { store, feed, close } = await connectEventStore({ url: server.url });
    const kafka = new KafkaConnection({ brokers: broker.brokers, log: silentLog, requestTimeoutMs: 2_000 });
    const topics = logTopics(`test-${newId()}`);
    const relay = new Relay({ feed, store, kafka, messages, topics, onProblem: () => undefined });
    const relaying = new AbortController();
    const relayed = relay.run(relaying.signal);
    await eventually(() => relay.progress.phase === 'active', WAIT);
    return {
      newFeed: () =>
        new KafkaEventFeed({
          kafka,
          messages,
          topic: topics.log,
          groupId: `test-${newId()}`,
          lostAfterMs: LOST_AFTER_MS,
        }),
      async append(...call) {
        const result = await store.append(...call);
        if (result.kind !== 'appended' || result.position === null) throw new Error(`not appended: ${result.kind}`);
        const { position } = result;
        await eventually(() => comparePositions(relay.progress.position ?? START, position) >= 0, {
          timeoutMs: DELIVERY_MS,
          everyMs: 5,
        });
      },
      head: () => feed.head(),
      async settled() {
        const head = await feed.head();
        await eventually(async () => {
          const saved = await kafka.committedMetadata(topics.relayGroup, topics.relayLock);
          return comparePositions(decodeCheckpoint(saved).position ?? START, head ?? START) >= 0;
        }, WAIT);
      },
      interrupt: () => broker.restart(),
      async stop() {
        relaying.abort();
        await relayed;
        await kafka.close();
        await close();
        await server.stop();
      },
    };
  },
  { setUpMs: KAFKA_START_MS, deliveryMs: DELIVERY_MS },
);

const START = { commit: 0n, prepare: 0n };

describe('partitioned feed: Kafka, with foreign messages and changed topics', { timeout: 180_000 }, () => {
  const PARTITIONS = 3;
  let kafka: KafkaConnection;
  let topic: string;

  beforeAll(() => {
    kafka = new KafkaConnection({ brokers: broker.brokers, log: silentLog });
  });
  afterAll(() => kafka?.close());

  it('has no ends without a topic, nor while a partition is empty', async () => {
    const { feed } = await begin({ count: 0 });
    expect(await feed.ends()).toBeNull();
    await makeTopic();
    expect(await feed.ends()).toBeNull();
    await kafka.send(topic, [events(1)[0]!]);
    expect(await feed.ends()).toBeNull();
    for (let partition = 0; partition < PARTITIONS; partition++) {
      await kafka.send(topic, [messages.encodeWatermark({ topic, partition }, START)]);
    }
    expect((await feed.ends())?.map(({ partition }) => partition).toSorted()).toEqual(['0', '1', '2']);
  });

  it('reports once that Kafka refuses to list the ends, and does not report a missing topic', async () => {
    const reported: unknown[] = [];
    const feedOf = (name: string) =>
      new KafkaEventFeed({
        kafka,
        messages,
        topic: name,
        groupId: name,
        onInterruption: (error) => reported.push(error),
      });
    const missing = feedOf(`test-${newId()}`);
    expect([await missing.ends(), await missing.ends()]).toEqual([null, null]);
    expect(reported).toEqual([]);
    const refused = feedOf('no name for a topic');
    expect([await refused.ends(), await refused.ends()]).toEqual([null, null]);
    expect(reported).toEqual([expect.objectContaining({ message: expect.stringMatching(/invalid/i) })]);
  });

  it('drops and counts messages that are foreign, forged or misplaced', async () => {
    const { checkpoints, refused, subscribe } = await begin();
    const [event] = events(1);
    const far = { commit: 2n ** 62n, prepare: 2n ** 62n };
    const copies = Array.from({ length: PARTITIONS }, (_, partition) => ({ ...event!, partition }));
    await kafka.send(topic, [
      ...copies,
      { key: 'test-a', value: 'not even JSON' },
      new LogMessages('another secret').encodeWatermark({ topic, partition: 0 }, far),
      { ...messages.encodeWatermark({ topic, partition: 1 }, far), partition: 2 },
    ]);
    const subscriber = await subscribe().until((one) => one.has('caught-up'));
    await subscriber.stop();
    expect(new Set(subscriber.events.map(({ stream }) => stream))).toEqual(new Set(['test-a']));
    // A member that joins again counts them again.
    expect(new Set(refused)).toEqual(new Set(['foreign', 'forged', 'misplaced']));
    expect(refused.filter((refusal) => refusal === 'misplaced').length).toBeGreaterThanOrEqual(3);
    const moved = checkpoints.all.filter(({ position }) => comparePositions(position, START) > 0);
    expect(moved.map(({ position }) => position)).toEqual([positionAt(1)]);
  });

  it('continues beside open transactions of other programs, and after ended ones', async () => {
    const { checkpoints, subscribe } = await begin();
    const others = new Kafka({ brokers: [...broker.brokers], logLevel: logLevel.NOTHING });
    const producer = others.producer({ transactionalId: newId(), idempotent: true, maxInFlightRequests: 1 });
    await producer.connect();
    const subscriber = subscribe();
    for (const [round, first] of [0, 2, 4].entries()) {
      const transaction = await producer.transaction();
      await transaction.send({ topic, messages: [{ key: 'test-a', value: `foreign ${round}` }] });
      await kafka.send(topic, events(2, first));
      await subscriber.until(() => checkpoints.all.some(({ position }) => position.commit === BigInt(first + 2)));
      await (round % 2 === 0 ? transaction.abort() : transaction.commit());
    }
    await kafka.send(topic, events(1, 6));
    await subscriber.until((one) => one.has('lost') || one.events.some(({ revision }) => revision === 6));
    await subscriber.stop();
    await producer.disconnect();
    expect(subscriber.has('lost')).toBe(false);
    expect([...new Set(subscriber.events.map(({ revision }) => revision))]).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  it('is lost where the topic was deleted, created and filled again between two fetches', async () => {
    const { subscribe } = await begin();
    await kafka.send(topic, events(3));
    const subscriber = subscribe();
    subscriber.hold();
    await subscriber.until(({ events: { length } }) => length > 0);
    await kafka.withAdmin((admin) => admin.deleteTopics({ topics: [topic] }));
    await makeTopic();
    await kafka.send(topic, events(20, 3));
    subscriber.release();
    await subscriber.until((one) => one.has('lost'));
    await subscriber.stop();
    expect(subscriber.events.every(({ revision }) => revision < 3)).toBe(true);
  });

  it('is lost where the number of partitions differs from the number of checkpoints', async () => {
    const { checkpoints, subscribe } = await begin();
    const fewer = await subscribe({
      from: async () => [...checkpoints.all, { partition: `${PARTITIONS}`, checkpoint: '0:', position: START }],
    }).until((one) => one.has('lost'));
    await fewer.stop();
    await kafka.withAdmin((admin) => admin.createPartitions({ topicPartitions: [{ topic, count: PARTITIONS + 1 }] }));
    const more = await subscribe().until((one) => one.has('lost'));
    await more.stop();
    for (const { items } of [fewer, more]) expect(items.map(({ kind }) => kind)).toEqual(['lost']);
  });

  it('leaves no member behind when it is stopped while it joins', async () => {
    const { groupId, subscribe } = await begin();
    for (let round = 0; round < 12; round++) {
      const subscriber = subscribe();
      for (let turn = 0; turn < round * 4; turn++) await new Promise((resolve) => setImmediate(resolve));
      await subscriber.stop();
    }
    await eventually(async () => {
      expect((await describeGroup(broker.brokers, groupId, topic)).members).toEqual([]);
    }, WAIT);
  });

  async function begin({ count = PARTITIONS } = {}) {
    topic = `test-${newId()}`;
    const groupId = `test-${newId()}`;
    if (count > 0) await makeTopic();
    const refused: Refusal[] = [];
    const feed = new KafkaEventFeed({
      kafka,
      messages,
      topic,
      groupId,
      lostAfterMs: LOST_AFTER_MS,
      onRefused: (refusal) => refused.push(refusal),
    });
    const partitions = Array.from({ length: count }, (_, partition) => `${partition}`);
    const checkpoints = new SavedCheckpoints(
      partitions.map((partition) => ({ partition, checkpoint: '0:', position: START })),
    );
    const subscribe = (options: Partial<FeedOptions<ReadCheckpoints>> = {}) =>
      new Subscriber(feed, checkpoints, { streamPrefixes: ['test-'], ...options }, DELIVERY_MS);
    return { feed, groupId, checkpoints, refused, subscribe };
  }

  const makeTopic = () => kafka.ensureTopics([{ topic, partitions: PARTITIONS }]);
});

const positionAt = (n: number) => ({ commit: BigInt(n), prepare: BigInt(n) });

/** Events of one stream, as a relay sends them. */
function events(count: number, first = 0) {
  return Array.from({ length: count }, (_, index) => messages.encode(event(first + index)));
}

function event(revision: number): StoredEvent {
  const id = newId();
  return {
    stream: 'test-a',
    revision: streamRevision(revision),
    position: positionAt(revision + 1),
    id,
    type: 'Tested.v1',
    data: { n: revision },
    metadata: logMetadata(id),
    createdMs: Date.now(),
  };
}
