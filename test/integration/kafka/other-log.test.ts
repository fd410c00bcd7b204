/** A relay resumes only in the log that it has published, however long another log is. */
import { EventStoreDBClient } from '@eventstore/db-client';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { NO_EVENTS } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { connectEventStore, type EventStoreClients, encodePosition } from '#libs/platform/eventstore/index.ts';
import { KafkaConnection, LogMessages, logTopics, type LogTopics } from '#libs/platform/kafka/index.ts';
import { decodeCheckpoint } from '#libs/platform/kafka/relay-checkpoint.ts';
import { silentLog } from '#libs/platform/lifecycle/index.ts';
import { startCutProxy } from '#test/support/cut-proxy.ts';
import { startTestEventStore } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { KAFKA_START_MS, startTestKafka, type TestKafka } from '#test/support/kafka/broker.ts';
import { runRelay } from '#test/support/kafka/running-relay.ts';
import { readEvents } from '#test/support/kafka/topic-reader.ts';
import { numberedEvents } from '#test/support/log-events.ts';

const WAIT = { timeoutMs: 60_000, everyMs: 50 };
const messages = new LogMessages('a secret of this test only');

let broker: TestKafka;
let servers: readonly Awaited<ReturnType<typeof startTestEventStore>>[];
/** `longer` has more events than `log`, with other ids. */
let log: EventStoreClients;
let longer: EventStoreClients;
let empty: EventStoreClients;
let kafka: KafkaConnection;
let topics: LogTopics;
let last: string;
const running: { stop(): Promise<void> }[] = [];

beforeAll(async () => {
  [broker, ...servers] = await Promise.all([
    startTestKafka(),
    startTestEventStore(),
    startTestEventStore(),
    startTestEventStore(),
  ]);
  const [one, two, three] = await Promise.all(servers.map(({ url }) => connectEventStore({ url })));
  [log, longer, empty] = [one!, two!, three!];
  kafka = new KafkaConnection({ brokers: broker.brokers, log: silentLog });
  last = (await append(log, 10)).at(-1)!;
  for (let round = 0; round < 5; round++) await append(longer, 10);
}, KAFKA_START_MS);

afterAll(async () => {
  await Promise.all(running.splice(0).map((relay) => relay.stop()));
  await kafka?.close();
  await Promise.all([log, longer, empty].map((one) => one?.close()));
  await Promise.all([broker, ...(servers ?? [])].map((one) => one?.stop()));
});

beforeEach(() => {
  topics = logTopics(`test-${newId()}`);
});

describe('a relay', { timeout: 120_000 }, () => {
  it('saves the event that it has published last, and resumes after it', async () => {
    await published();
    expect(decodeCheckpoint(await saved()).last).toMatchObject({ id: last, revision: 9 });
    const relay = startRelay(log);
    await eventually(() => relay.progress.phase === 'active', WAIT);
    await relay.stop();
    expect(await idsInKafka()).toHaveLength(10);
  });

  it.each([
    ['a longer log', () => longer],
    ['an empty log', () => empty],
  ])('refuses %s until an operator accepts it', async (_, other) => {
    await published();
    const refusing = startRelay(other());
    await eventually(() => refusing.problems.length >= 2, WAIT);
    expect(refusing.progress).toMatchObject({
      phase: 'away',
      problem: expect.stringMatching(
        new RegExp(`does not hold event 9 of relayed-.* \\(id ${last}, .*KAFKA_ACCEPT_LOST_EVENT=${last} `),
      ),
    });
    await refusing.stop();
    // Another event was not meant.
    const mistaken = startRelay(other(), newId());
    await eventually(() => mistaken.problems.length >= 1, WAIT);
    await mistaken.stop();
    expect(await idsInKafka()).toHaveLength(10);
    const accepting = startRelay(other(), last);
    const head = await other().feed.head();
    await eventually(() => {
      const { phase, position } = accepting.progress;
      const reached = (at: typeof head) => encodePosition(at ?? { commit: 0n, prepare: 0n });
      expect([phase, reached(position)]).toEqual(['active', reached(head)]);
    }, WAIT);
    expect(await idsInKafka()).toHaveLength(other() === longer ? 60 : 10);
    expect(accepting.progress.problem).toBeNull();
    await accepting.stop();
  });

  it('that runs notices that the event store came back with another log, before it publishes of it', async () => {
    const address = await startCutProxy(addressOf(servers[0]!));
    const behind = await connectEventStore({ url: `esdb://${new URL(address.baseUrl).host}?tls=false` });
    const relay = startRelay(behind);
    await eventually(async () => expect(await idsInKafka()).toHaveLength(10), WAIT);
    address.redirect(addressOf(servers[1]!));
    address.cut();
    await append(longer, 1);
    await eventually(() => /does not hold event/.test(relay.progress.problem ?? ''), WAIT);
    expect(await idsInKafka()).toHaveLength(10);
    await relay.stop();
    await behind.close();
    await address.stop();
  });

  it('resumes although an operator has deleted the stream of the last event', async () => {
    const server = await startTestEventStore();
    const own = await connectEventStore({ url: server.url });
    const events = numberedEvents(3);
    await own.store.append('relayed-deleted', NO_EVENTS, events);
    const before = startRelay(own);
    await eventually(async () => expect(decodeCheckpoint(await saved()).last?.id).toBe(events.at(-1)?.id), WAIT);
    await before.stop();
    const client = EventStoreDBClient.connectionString(server.url);
    await client.deleteStream('relayed-deleted');
    await client.dispose();
    const relay = startRelay(own);
    await eventually(() => relay.progress.phase === 'active', WAIT);
    const [id] = await append(own, 1);
    await eventually(async () => expect(await idsInKafka()).toContain(id), WAIT);
    await relay.stop();
    expect(await idsInKafka()).toHaveLength(4);
    await own.close();
    await server.stop();
  });

  it('trusts the bare position of an older version once, unless the log is shorter', async () => {
    const head = (await log.feed.head())!;
    await kafka.ensureTopics([{ topic: topics.relayLock, partitions: 1 }]);
    await saveBare(encodePosition(head));
    const refusing = startRelay(empty);
    await eventually(() => refusing.progress.problem !== null, WAIT);
    expect(refusing.progress.problem).toContain(`KAFKA_ACCEPT_LOST_EVENT=${encodePosition(head)} `);
    await refusing.stop();
    const relay = startRelay(log);
    await eventually(() => relay.progress.phase === 'active', WAIT);
    const [id] = await append(log, 1);
    await eventually(async () => expect(decodeCheckpoint(await saved()).last?.id).toBe(id), WAIT);
    await relay.stop();
    expect(await idsInKafka()).toEqual([id]);
  });
});

/** Ten events in Kafka, and the checkpoint after them. */
async function published(): Promise<void> {
  const relay = startRelay(log);
  await eventually(async () => expect(decodeCheckpoint(await saved()).last?.id).toBe(last), WAIT);
  await relay.stop();
}

const saved = (): Promise<string | null> => kafka.committedMetadata(topics.relayGroup, topics.relayLock);

/** As a relay of an older version has saved it. */
async function saveBare(metadata: string): Promise<void> {
  const consumer = kafka.groupMember({ groupId: topics.relayGroup, fetchMs: 100 });
  const joined = new Promise<void>((resolve) => void consumer.on(consumer.events.GROUP_JOIN, () => resolve()));
  await consumer.connect();
  await consumer.subscribe({ topics: [topics.relayLock] });
  await consumer.run({ autoCommit: false, eachBatch: async () => undefined });
  await joined;
  await consumer.commitOffsets([{ topic: topics.relayLock, partition: 0, offset: '0', metadata }]);
  await consumer.disconnect();
}

function startRelay({ feed, store }: EventStoreClients, acceptLostEvent: string | null = null) {
  const problems: unknown[] = [];
  const onProblem = (problem: unknown) => void problems.push(problem);
  const relay = runRelay({ feed, store, messages, topics, acceptLostEvent, onProblem }, { brokers: broker.brokers });
  const started = Object.assign(relay, { problems });
  running.push(started);
  return started;
}

/** @returns the ids of the appended events */
async function append({ store }: EventStoreClients, count: number): Promise<readonly string[]> {
  const events = numberedEvents(count);
  const result = await store.append(`relayed-${newId()}`, NO_EVENTS, events);
  if (result.kind !== 'appended') throw new Error('not appended');
  return events.map(({ id }) => id);
}

async function idsInKafka(): Promise<readonly string[]> {
  return (await readEvents(broker.brokers, topics.log, messages)).map(({ id }) => id);
}

const addressOf = ({ port }: { readonly port: number }): string => `http://127.0.0.1:${port}`;
