/**
 * Relays as separate processes, on three brokers: whichever of them is killed or paused, nothing is missing in Kafka.
 */
import kafkajs, { type ITopicConfig, type PartitionMetadata } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { connectEventStore, type EventStoreClients } from '#libs/platform/eventstore/index.ts';
import { KafkaConnection, KafkaEventFeed, LogMessages, logTopics } from '#libs/platform/kafka/index.ts';
import { partitionOf } from '#libs/platform/kafka/kafkajs/partitioner.ts';
import { silentLog } from '#libs/platform/lifecycle/index.ts';
import { startTestEventStore } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestKafkaCluster, type TestKafkaCluster } from '#test/support/kafka/broker-cluster.ts';
import { KAFKA_START_MS } from '#test/support/kafka/broker.ts';
import { readEvents, readTopic } from '#test/support/kafka/topic-reader.ts';
import { logMetadata } from '#test/support/log-events.ts';
import { asRecord } from '#test/support/log-reader.ts';
import { type ParleyProcess, startParleyProcess } from '#test/support/parley-process.ts';
import { startTestRedis } from '#test/support/redis.ts';

const SECRET = 'a secret of this test only';
/** Only ends a hang. */
const WAIT = { timeoutMs: 150_000, everyMs: 200 };
const topics = logTopics('parley');
const streams = Array.from({ length: 4 }, () => `channel-${newId()}`);

let cluster: TestKafkaCluster;
let eventStore: Awaited<ReturnType<typeof startTestEventStore>>;
let redis: Awaited<ReturnType<typeof startTestRedis>>;
let log: EventStoreClients;
let kafka: KafkaConnection;
let relays: readonly ParleyProcess[];
let written = 0;

beforeAll(async () => {
  [cluster, eventStore, redis] = await Promise.all([startTestKafkaCluster(), startTestEventStore(), startTestRedis()]);
  log = await connectEventStore({ url: eventStore.url });
  kafka = new KafkaConnection({ brokers: cluster.brokers, log: silentLog });
  const env = { KAFKA_BROKERS: cluster.brokers.join(','), PARLEY_TOKEN_SECRET: SECRET };
  const relay = { role: 'relay', eventstoreUrl: eventStore.url, redisUrl: redis.url, env } as const;
  relays = await Promise.all([startParleyProcess(relay), startParleyProcess(relay)]);
}, KAFKA_START_MS);

afterAll(async () => {
  await Promise.all((relays ?? []).map((relay) => relay.stop()));
  await kafka?.close();
  await log?.close();
  await Promise.all([cluster?.stop(), eventStore?.stop(), redis?.stop()]);
}, 120_000);

/** Runs only on request (`npm run test:deployment`): three brokers are much for a small machine. */
const isWanted = process.env['DEPLOYMENT_ROUNDS'] !== undefined;

describe.runIf(isWanted)('a request to several brokers', { timeout: 400_000 }, () => {
  it('is sent again as a whole when a partition has moved to a broker that already took its own part', async () => {
    const topic = `test-${newId()}`;
    await kafka.withAdmin((admin) => admin.createTopics({ topics: [onFirstTwoBrokers(topic)], waitForLeaders: false }));
    await eventually(async () => expect(await leadersOf(topic)).toEqual([FIRST, SECOND]), WAIT);
    const send = async (value: string): Promise<void> =>
      kafka.send(
        topic,
        [0, 1].map((partition) => ({ partition, key: 'a', value })),
      );
    // It may be refused, but not lost.
    await eventually(() => send('before'), WAIT);
    const partitionAssignment = [{ partition: 0, replicas: [SECOND] }];
    await kafka.withAdmin((admin) => admin.alterPartitionReassignments({ topics: [{ topic, partitionAssignment }] }));
    await eventually(async () => expect(await leadersOf(topic)).toEqual([SECOND, SECOND]), WAIT);
    // The producer still sends partition 0 to its former broker.
    await eventually(() => send('after'), WAIT);
    const found = await readTopic(cluster.brokers, topic);
    const saidIn = (wanted: number) =>
      found.filter(({ partition }) => partition === wanted).map(({ value }) => String(value));
    expect([...new Set(saidIn(0))]).toEqual(['before', 'after']);
    expect([...new Set(saidIn(1))]).toEqual(['before', 'after']);
  });
});

describe.runIf(isWanted)('relays', { timeout: 400_000 }, () => {
  it('take over from a killed relay without a gap', async () => {
    const active = await activeRelay();
    await whileWriting(async () => {
      await active.kill9();
      await activeRelay();
    });
    await active.start({ wait: false });
    expect(await revisionsInKafka()).toEqual(allThatWasWritten());
  });

  it('are not disturbed by a relay that was paused past its session and resumes', async () => {
    const sleeper = await activeRelay();
    await whileWriting(async () => {
      sleeper.pause();
      await activeRelay(relays.filter((relay) => relay !== sleeper));
      await writtenSome();
      sleeper.resume();
      // It now performs its interrupted action and then sees that its term is over. Its next term may follow.
      await eventually(async () => {
        const phases = await Promise.all(relays.map(phaseOf));
        expect(phases.toSorted()).toEqual(['active', 'standby']);
      }, WAIT);
    });
    expect(await revisionsInKafka()).toEqual(allThatWasWritten());
  });

  it('lose nothing when one of three brokers dies', async () => {
    // On a busy machine a broker may be behind: then the others have to wait for it.
    const partitions = await eventually(async () => {
      const found = await partitionsOf(topics.log);
      expect(found.map(({ isr }) => isr.length)).toEqual(Array.from({ length: 12 }, () => 3));
      return found;
    }, WAIT);
    // A broker that is written to, and that holds the only copy of a partition of another topic.
    expect(partitions.map(({ leader }) => leader)).toContain(SECOND);
    await whileWriting(async () => {
      await cluster.kill9(SECOND);
      await writtenSome();
      const active = await activeRelay();
      await active.kill9();
      await active.start({ wait: false });
      await activeRelay();
    });
    expect(await revisionsInKafka()).toEqual(allThatWasWritten());
    expect(await firstKindOfShared()).toBe('assigned');
  });

  it('start, and create topics, while no broker has the topic of another team', async () => {
    await whileWriting(async () => {
      await Promise.all(relays.map((relay) => relay.kill9()));
      await Promise.all(relays.map((relay) => relay.start({ wait: false })));
      await activeRelay();
    });
    expect(await revisionsInKafka()).toEqual(allThatWasWritten());
    const topic = `test-${newId()}`;
    await kafka.ensureTopics([{ topic, partitions: 1 }]);
    expect(await leadersOf(topic)).toHaveLength(1);
  });

  it('name a topic that too few brokers have, repeat nothing, and publish it once they are back', async () => {
    // One of three brokers is still dead.
    await requireInSync(topics.events, 3);
    await whileWriting(writtenSome);
    const refusing = (await activeRelay()).api;
    const refused = await eventually(async () => {
      const { problem, refusing: partitions } = await relayDetail(refusing);
      expect(problem).toMatch(new RegExp(`^${topics.events} refuses ChannelRenamed.v1 channel-.*in-sync replicas`));
      expect(partitions).toHaveLength(new Set(streams.map((stream) => partitionOf(stream, 12))).size);
      return endsOf(topics.events);
    }, WAIT);
    // The other topic continues, and the refusing partitions are tried again.
    await whileWriting(writtenSome);
    await eventually(async () => {
      const log = await readEvents(cluster.brokers, topics.log, new LogMessages(SECRET));
      const last = streams.map((stream) => Math.max(...log.filter((one) => one.stream === stream).map(revisionOf)));
      expect(last).toEqual(streams.map(() => written - 1));
    }, WAIT);
    expect(await endsOf(topics.events)).toEqual(refused);
    await cluster.restart(SECOND);
    expect(await revisionsInKafka()).toEqual(allThatWasWritten());
    await eventually(
      async () => expect(await relayDetail(refusing)).toMatchObject({ problem: null, refusing: [] }),
      WAIT,
    );
  });
});

async function requireInSync(topic: string, replicas: number): Promise<void> {
  const configEntries = [{ name: 'min.insync.replicas', value: `${replicas}` }];
  const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configEntries }];
  await kafka.withAdmin((admin) => admin.alterConfigs({ validateOnly: false, resources }));
}

async function endsOf(topic: string): Promise<readonly string[]> {
  const ends = await kafka.withAdmin((admin) => admin.fetchTopicOffsets(topic));
  return ends.toSorted((one, other) => one.partition - other.partition).map(({ high }) => high);
}

const revisionOf = ({ revision }: { readonly revision: number }): number => Number(revision);

/** The kind of the first notification that a new member of the consumer group gets. */
async function firstKindOfShared(): Promise<string | undefined> {
  const messages = new LogMessages(SECRET);
  const feed = new KafkaEventFeed({ kafka, messages, topic: topics.log, groupId: `test-${newId()}` });
  const ends = (await feed.ends()) ?? [];
  const marks = ends.map((end) => ({ ...end, position: { commit: 0n, prepare: 0n } }));
  const abort = new AbortController();
  const items = feed.subscribe({ streamPrefixes: ['channel-'], signal: abort.signal, from: async () => marks });
  const { value } = await items.next();
  abort.abort();
  await items.return();
  return value?.kind;
}

const [FIRST, SECOND] = [1, 2];

async function partitionsOf(topic: string): Promise<readonly PartitionMetadata[]> {
  const { topics: found } = await kafka.withAdmin((admin) => admin.fetchTopicMetadata({ topics: [topic] }));
  return found[0]?.partitions.toSorted((one, other) => one.partitionId - other.partitionId) ?? [];
}

async function leadersOf(topic: string): Promise<readonly number[]> {
  return (await partitionsOf(topic)).map(({ leader }) => leader);
}

/** Two partitions, on a broker each, without copies. */
function onFirstTwoBrokers(topic: string): ITopicConfig {
  return {
    topic,
    replicaAssignment: [FIRST, SECOND].map((id, partition) => ({ partition, replicas: [id] })),
    configEntries: [{ name: 'min.insync.replicas', value: '1' }],
  };
}

/** Appends to every stream in turn, during `work` and a little longer. */
async function whileWriting(work: () => Promise<void>): Promise<void> {
  const over = new AbortController();
  const writing = (async () => {
    while (!over.signal.aborted) await writeOnce();
  })();
  try {
    await work();
  } finally {
    over.abort();
    await writing;
  }
  await writeOnce();
}

async function writeOnce(): Promise<void> {
  for (const stream of streams) {
    const events = Array.from({ length: 3 }, (_, n) => ({
      id: newId(),
      type: 'ChannelRenamed.v1',
      data: { name: `name ${written + n}` },
      metadata: logMetadata(newId()),
    }));
    const result = await log.store.append(stream, written === 0 ? NO_EVENTS : streamRevision(written - 1), events);
    if (result.kind !== 'appended') throw new Error(`not appended to ${stream}`);
  }
  written += 3;
  // At most what the relays can send on a busy machine while they fail.
  await new Promise((resolve) => setTimeout(resolve, 20));
}

async function writtenSome(): Promise<void> {
  const before = written;
  await eventually(() => written >= before + 30, WAIT);
}

async function relayDetail(api: ParleyProcess['api']): Promise<Readonly<Record<string, unknown>>> {
  const { checks } = asRecord((await api.get('/health/ready', { timeoutMs: 5_000 })).json());
  return asRecord(asRecord(asRecord(checks)['relay'])['detail']);
}

async function phaseOf({ api }: ParleyProcess): Promise<unknown> {
  return (await relayDetail(api))['phase'];
}

async function activeRelay(among = relays): Promise<ParleyProcess> {
  return eventually(async () => {
    for (const relay of among) if (relay.alive() && (await phaseOf(relay)) === 'active') return relay;
    const alive = among.filter((relay) => relay.alive());
    const states = await Promise.all(alive.map(async ({ api }) => (await api.get('/health/ready')).text));
    throw new Error(`no relay is active: ${states.join('\n')}`);
  }, WAIT);
}

/** By stream, in the topic of the log and in the public topic. */
type RevisionsByStream = Readonly<
  Record<string, { readonly log: readonly number[]; readonly events: readonly number[] }>
>;

function allThatWasWritten(): RevisionsByStream {
  const all = Array.from({ length: written }, (_, n) => n);
  return Object.fromEntries(streams.map((stream) => [stream, { log: all, events: all }]));
}

/** The revisions of each stream in Kafka without duplicates, once as many are there as were written. */
async function revisionsInKafka(): Promise<RevisionsByStream> {
  const messages = new LogMessages(SECRET);
  const look = async (): Promise<RevisionsByStream> => {
    const [inLog, forOthers] = await Promise.all([
      readEvents(cluster.brokers, topics.log, messages),
      readTopic(cluster.brokers, topics.events),
    ]);
    const sights = streams.map((stream) => {
      const log = inLog.filter((event) => event.stream === stream).map(({ revision }) => Number(revision));
      const own = forOthers.filter(({ key }) => String(key) === stream);
      const events = own.map(({ headers }) => Number(headers?.['ce_sequence']) - 1);
      return [stream, { log: [...new Set(log)], events: [...new Set(events)] }] as const;
    });
    return Object.fromEntries(sights);
  };
  return eventually(
    async () => {
      const sights = await look();
      const counts = Object.values(sights).flatMap(({ log: seen, events }) => [seen.length, events.length]);
      if (Math.min(...counts) < written) {
        const phases = (await Promise.all(relays.map(phaseOf))).map(String);
        throw new Error(`events are missing: of ${written}, ${counts.join(', ')}; relays: ${phases.join(', ')}`);
      }
      return sights;
    },
    { ...WAIT, everyMs: 1_000 },
  );
}
