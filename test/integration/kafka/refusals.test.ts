/** What a broker refuses is shown, waits, and repeats nothing; everything else is published. */
import kafkajs from 'kafkajs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { connectEventStore, type EventStoreClients, encodePosition } from '#libs/platform/eventstore/index.ts';
import {
  KafkaConnection,
  LogMessages,
  logTopics,
  type LogTopics,
  type RefusingPartition,
} from '#libs/platform/kafka/index.ts';
import { partitionOf } from '#libs/platform/kafka/kafkajs/partitioner.ts';
import { silentLog } from '#libs/platform/lifecycle/index.ts';
import { composePublicMessages } from '#services/features.ts';
import { startTestEventStore } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { KAFKA_START_MS, startSharedTestKafka, type TestKafka } from '#test/support/kafka/broker.ts';
import { runRelay } from '#test/support/kafka/running-relay.ts';
import { readEvents, readTopic } from '#test/support/kafka/topic-reader.ts';
import { logMetadata } from '#test/support/log-events.ts';
import { IN_CAMPAIGN } from '#test/support/rounds.ts';

const WAIT = { timeoutMs: 90_000, everyMs: 100 };
const messages = new LogMessages('a secret of this test only');
const SETTINGS = {
  'max.message.bytes': '4194304',
  'compression.type': 'producer',
  'cleanup.policy': 'delete',
} as const;
const PARTITIONS = 12;

let broker: TestKafka;
let eventStore: Awaited<ReturnType<typeof startTestEventStore>>;
let log: EventStoreClients;
let kafka: KafkaConnection;
let topics: LogTopics;
/** Streams of the current test. Those of others are in its topics as well. */
let channels: readonly string[];
const running: { stop(): Promise<void> }[] = [];

beforeAll(async () => {
  [broker, eventStore] = await Promise.all([startSharedTestKafka(), startTestEventStore()]);
  log = await connectEventStore({ url: eventStore.url });
  kafka = new KafkaConnection({ brokers: broker.brokers, log: silentLog });
}, KAFKA_START_MS);

afterAll(async () => {
  await Promise.all(running.splice(0).map((relay) => relay.stop()));
  await kafka?.close();
  await log?.close();
  await Promise.all([broker?.stop(), eventStore?.stop()]);
});

beforeEach(() => {
  topics = logTopics(`test-${newId()}`);
  channels = Array.from({ length: 8 }, () => `channel-${newId()}`);
});

describe('a refusal of Kafka', { timeout: 180_000 }, () => {
  it('of batches that are larger than a topic takes is no refusal of their messages', async () => {
    await createTopic(topics.log, { 'max.message.bytes': '3000' });
    const [stream = ''] = channels;
    await append(
      stream,
      0,
      Array.from({ length: 20 }, (_, n) => `${n}`),
    );
    const relay = startRelay();
    await eventually(async () => relay.hasReached(await log.feed.head()), WAIT);
    expect((await inTopic(topics.log)).filter((one) => streamOf(one) === stream)).toEqual(
      numbers(20).map((n) => `${stream}@${n}`),
    );
    await relay.stop();
  });

  it('of one message for other teams stops its partition only, repeats nothing, and is named', async () => {
    await createTopic(topics.events, { 'max.message.bytes': '20000' });
    const relay = startRelay();
    await writeRound(0);
    const [refused = ''] = channels;
    const partition = partitionOf(refused, PARTITIONS);
    await append(refused, 3, ['x'.repeat(60_000), 'after']);
    await writeRound(
      3,
      channels.filter((one) => one !== refused),
    );
    await eventually(() => relay.progress.refusing.length === 1, WAIT);
    const head = (await log.feed.head())!;
    await eventually(async () => expect(new Set(await inTopic(topics.log)).size).toBe(8 * 6 - 1), WAIT);
    const others = await eventually(async () => {
      const all = await inTopic(topics.events);
      expect(all.filter((one) => partitionOf(streamOf(one), PARTITIONS) !== partition)).toEqual(
        expect.arrayContaining([...eventsOf((stream) => partitionOf(stream, PARTITIONS) !== partition, 6)]),
      );
      expect(all).toContain(`${refused}@2`);
      return all.length;
    }, WAIT);
    const stored = await messageCounts();
    const seen = relay.refusals.length;
    await eventually(() => relay.refusals.length >= seen + 2, WAIT);
    // The same event each time, and nothing was stored meanwhile.
    expect(relay.refusals.every(({ event }) => event?.includes(`${refused}@3`))).toBe(true);
    expect(await messageCounts()).toEqual(stored);
    expect(await inTopic(topics.events)).toHaveLength(others);
    const { progress } = relay;
    expect(progress.phase).toBe('active');
    expect(progress.problem).toMatch(
      new RegExp(`${topics.events} refuses ChannelRenamed.v1 ${refused}@3 .*(larger|too large)`, 'i'),
    );
    expect(progress.topicProblems).toEqual([`${topics.events} has max.message.bytes=20000; Parley needs 4194304`]);
    expect(encodePosition(progress.position!)).not.toBe(encodePosition(head));

    // A successor resumes each partition where it was.
    await relay.stop();
    const next = startRelay();
    await eventually(() => next.refusals.length > 0, WAIT);
    expect((await inTopic(topics.events)).length).toBe(others);
    await configure(topics.events, { 'max.message.bytes': '4194304' });
    await eventually(() => next.progress.refusing.length === 0 && next.progress.problem === null, WAIT);
    await append(refused, 5, ['last']);
    await eventually(async () => expect(await inTopic(topics.events)).toContain(`${refused}@5`), WAIT);
    const all = await inTopic(topics.events);
    expect(all.toSorted()).toEqual([...eventsOf(() => true, 6)].toSorted());
    expect(all.filter((one) => streamOf(one) === refused)).toEqual(numbers(6).map((n) => `${refused}@${n}`));
    expect((await inTopic(topics.log)).toSorted()).toEqual([...eventsOf(() => true, 6)].toSorted());
    await next.stop();
  });

  it('of watermarks by a compacted topic is named; events are stored once', async () => {
    await createTopic(topics.log, { 'cleanup.policy': 'compact' });
    const relay = startRelay();
    await writeRound(0);
    await eventually(() => /refuses watermarks.*key/.test(relay.progress.problem ?? ''), WAIT);
    expect(relay.progress.topicProblems).toEqual([`${topics.log} has cleanup.policy=compact; Parley needs delete`]);
    await eventually(
      async () => expect((await inTopic(topics.log)).toSorted()).toEqual(eventsOf(() => true, 3).toSorted()),
      WAIT,
    );
    const stored = await messageCounts();
    await writeRound(3);
    await eventually(async () => expect((await inTopic(topics.log)).length).toBe(8 * 6), WAIT);
    expect(stored[topics.log]).toBeLessThanOrEqual((await messageCounts())[topics.log]! - 24);
    await configure(topics.log, {});
    await eventually(() => relay.progress.problem === null, WAIT);
    expect((await inTopic(topics.log)).toSorted()).toEqual(eventsOf(() => true, 6).toSorted());
    await relay.stop();
  });

  it.runIf(IN_CAMPAIGN)('ends when a deleted topic is created again; the other topic is not disturbed', async () => {
    const relay = startRelay();
    await writeRound(0);
    await eventually(async () => expect((await inTopic(topics.events)).length).toBe(24), WAIT);
    await kafka.withAdmin((admin) => admin.deleteTopics({ topics: [topics.events] }));
    await writeRound(3);
    await eventually(async () => expect((await inTopic(topics.log)).length).toBe(48), WAIT);
    await eventually(async () => expect(new Set(await inTopic(topics.events)).size).toBe(24), WAIT);
    await eventually(() => relay.progress.problem === null, WAIT);
    expect((await inTopic(topics.events)).toSorted()).toEqual(
      channels.flatMap((stream) => [3, 4, 5].map((n) => `${stream}@${n}`)).toSorted(),
    );
    expect((await inTopic(topics.log)).length).toBe(48);
    await relay.stop();
  });

  it('names a topic that a consumer has created with one partition', async () => {
    await kafka.ensureTopics([{ topic: topics.events, partitions: 1, settings: SETTINGS }]);
    const relay = startRelay();
    await eventually(() => relay.progress.phase === 'active', WAIT);
    expect(relay.progress.topicProblems).toEqual([`${topics.events} has 1 partition; Parley creates 12`]);
    await relay.stop();
  });
});

function startRelay() {
  const refusals: RefusingPartition[] = [];
  const { feed, store } = log;
  const options = {
    feed,
    store,
    messages,
    publicMessages: composePublicMessages(() => undefined),
    topics,
    onProblem: () => undefined,
    onRefused: (refusal: RefusingPartition) => void refusals.push(refusal),
  };
  const relay = runRelay(options, { brokers: broker.brokers, requestTimeoutMs: 5_000 });
  const started = Object.assign(relay, {
    refusals,
    hasReached: (head: Awaited<ReturnType<typeof log.feed.head>>) =>
      head !== null &&
      relay.progress.position !== null &&
      encodePosition(relay.progress.position) === encodePosition(head),
  });
  running.push(started);
  return started;
}

const createTopic = (topic: string, settings: Readonly<Record<string, string>>): Promise<void> =>
  kafka.ensureTopics([{ topic, partitions: PARTITIONS, settings: { ...SETTINGS, ...settings } }]);

/** Replaces all settings of a topic. */
async function configure(topic: string, settings: Readonly<Record<string, string>>): Promise<void> {
  const configEntries = Object.entries({ ...SETTINGS, ...settings }).map(([name, value]) => ({ name, value }));
  const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configEntries }];
  await kafka.withAdmin((admin) => admin.alterConfigs({ validateOnly: false, resources }));
}

/** Three events in each of these streams. */
async function writeRound(from: number, streams = channels): Promise<void> {
  for (const stream of streams) await append(stream, from, ['a', 'b', 'c']);
}

async function append(stream: string, from: number, names: readonly string[]): Promise<void> {
  const events = names.map((name) => ({
    id: newId(),
    type: 'ChannelRenamed.v1',
    data: { name },
    metadata: logMetadata(newId()),
  }));
  const result = await log.store.append(stream, from === 0 ? NO_EVENTS : streamRevision(from - 1), events);
  if (result.kind !== 'appended') throw new Error(`not appended to ${stream}`);
}

/** `stream@revision` of every message about the current channels, duplicates included, in the order of each partition. */
async function inTopic(topic: string): Promise<readonly string[]> {
  const all =
    topic === topics.log
      ? (await readEvents(broker.brokers, topic, messages)).map(({ stream, revision }) => `${stream}@${revision}`)
      : (await readTopic(broker.brokers, topic)).map(
          ({ key, headers }) => `${String(key)}@${Number(headers?.['ce_sequence']) - 1}`,
        );
  return all.filter((one) => channels.includes(streamOf(one)));
}

/** Messages in each topic, of all kinds. */
async function messageCounts(): Promise<Readonly<Record<string, number>>> {
  const counts = [topics.log, topics.events].map(async (topic) => {
    const ends = await kafka.withAdmin((admin) => admin.fetchTopicOffsets(topic));
    return [topic, ends.reduce((sum, { high }) => sum + Number(high), 0)] as const;
  });
  return Object.fromEntries(await Promise.all(counts));
}

const streamOf = (name: string): string => name.slice(0, name.lastIndexOf('@'));
const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
const eventsOf = (isWanted: (stream: string) => boolean, count: number): readonly string[] =>
  channels.filter(isWanted).flatMap((stream) => numbers(count).map((n) => `${stream}@${n}`));
