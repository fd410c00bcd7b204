/** Projectors that divide the log over Kafka, as processes that are killed and paused, with stores that fail. */
import { CHANNEL_PROJECTION_KEYS } from '#test/support/projection-keys.ts';
import type { ChainableCommander, Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { comparePositions, decodePosition, type FeedItem } from '#libs/platform/eventstore/index.ts';
import { KafkaConnection, KafkaEventFeed, LogMessages, logTopics, Relay } from '#libs/platform/kafka/index.ts';
import { pause, silentLog } from '#libs/platform/lifecycle/index.ts';
import { PartitionCheckpoints, ReadModel } from '#libs/platform/readmodel/index.ts';
import { partitionsKey } from '#libs/platform/readmodel/read-model.keys.ts';
import { connectRedis, type RedisClient, waitForRedis } from '#libs/platform/redis/index.ts';
import { composeReadModels, PROJECTIONS } from '#services/features.ts';
import { ProjectionLoop } from '#services/projector/projection-loop.ts';
import { rebuild } from '#services/projector/rebuild.ts';
import { channelTurns } from '#test/bench/channel-log.ts';
import { eventually } from '#test/support/eventually.ts';
import { KAFKA_START_MS, startTestKafkaProcess, type TestKafkaProcess } from '#test/support/kafka/broker.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { type ProjectorProcess, startProjectorProcess } from '#test/support/projector-process.ts';
import { dumpReadModels } from '#test/support/read-model-dump.ts';
import { flush, nodeWith } from '#test/support/redis-commands.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';

const SECRET = 'a secret of this test only';
/** The default of `KAFKA_SESSION_TIMEOUT_MS`. */
const SESSION_MS = 6_000;
/**
 * A member is silent for a session, the group waits for another one, and after 15 s without progress the projectors
 * go back to the log and hand over again. Measured: 2 to 9 s.
 */
const WAIT = { timeoutMs: 120_000, everyMs: 100 };
const messages = new LogMessages(SECRET);
const PREFIX = 'partitioned';
const PARTITIONS = partitionsKey(PROJECTIONS);
const TOPICS = logTopics(PREFIX);

let broker: TestKafkaProcess;
let test: TestPlatform<TestRedis>;
let kafka: KafkaConnection;
/** Where the log is folded again, to compare. */
let other: { readonly server: TestRedis; readonly redis: RedisClient };
const relaying = new AbortController();
let relayed: Promise<void>;
/** Shared by the tests, because starting one takes a while. */
const projectors: ProjectorProcess[] = [];

beforeAll(async () => {
  const [server, ...rest] = await Promise.all([
    startTestRedis(),
    startTestKafkaProcess(),
    startTestPlatform({ redis: 'own' }),
  ]);
  [broker, test] = rest;
  other = { server, redis: connectRedis(server.url, { onError: () => undefined }) };
  await waitForRedis(other.redis, 60_000);
  kafka = new KafkaConnection({ brokers: broker.brokers, log: silentLog, requestTimeoutMs: 2_000 });
  const { feed, store } = test.platform;
  const relay = new Relay({ feed, store, kafka, messages, topics: TOPICS, onProblem: () => undefined });
  relayed = relay.run(relaying.signal);
}, KAFKA_START_MS);

afterAll(async () => {
  await Promise.all(projectors.map((projector) => projector.kill9()));
  relaying.abort();
  await relayed;
  await kafka?.close();
  other?.redis.close();
  await Promise.all([test?.stop(), broker?.stop(), other?.server.stop()]);
});

describe('projectors that divide the log', { timeout: 240_000 }, () => {
  // Runs beside the next test, because it mostly waits.
  it.concurrent('stay members of the group after a long silence, even if an interruption follows', async () => {
    const topic = 'partitioned.quiet';
    await kafka.ensureTopics([{ topic, partitions: 1 }]);
    const lostAfterMs = 8_000;
    const feed = new KafkaEventFeed({ kafka, messages, topic, groupId: topic, lostAfterMs });
    const checkpoints = [{ partition: '0', checkpoint: '0:', position: { commit: 0n, prepare: 0n } }];
    let isAway = false;
    const abort = new AbortController();
    const { signal } = abort;
    const member = feed.subscribe({
      streamPrefixes: ['channel-'],
      signal,
      from: async () => {
        if (!isAway) return checkpoints;
        isAway = false;
        throw new Error('the store of the checkpoints is away');
      },
    });
    expect(await kindOf(member)).toBe('assigned');
    expect(await kindOf(member)).toBe('caught-up');
    const next = kindOf(member);
    await pause(lostAfterMs + 1_000, signal);
    isAway = true;
    const other = feed.subscribe({ streamPrefixes: ['channel-'], signal, from: async () => checkpoints });
    const others = kindOf(other);
    expect(await next).toBe('assigned');
    expect(isAway).toBe(false);
    abort.abort();
    await others;
    await Promise.all([member.return(), other.return()]);
  });

  it.concurrent(
    'divide all partitions among them once the log is folded, and apply what no gateway has applied',
    async () => {
      await append(100);
      startProjectors(3);
      await eventually(async () => {
        const partitions = (await details()).map(partitionsOf);
        if (partitions.some((held) => held.length === 0)) throw new Error(`partitions: ${JSON.stringify(partitions)}`);
        expect(partitions.flat().toSorted()).toEqual(await allPartitions());
      }, WAIT);
      await append(100);
      await expectFoldOfLog();
      // Each sees what the others have saved at its next save.
      await eventually(async () => {
        expect((await details()).map(({ caught_up: caughtUp }) => caughtUp)).toEqual([true, true, true]);
      }, WAIT);
    },
  );

  it('lose and corrupt nothing while they are killed and paused, and broker and Redis lose connections and writes', async () => {
    await eventually(allHoldPartitions, WAIT);
    const writing = new AbortController();
    const written = appendUntil(writing.signal);
    try {
      await projectors.shift()?.kill9();
      startProjectors(1);
      projectors[0]?.pause();
      await progress();
      const kept = await copyOfRedis();
      await broker.restart();
      await progress();
      await setBack(kept);
      await progress();
      projectors[0]?.resume();
      await flush(test.platform.redis);
      await progress();
    } finally {
      projectors[0]?.resume();
      writing.abort();
      await written;
    }
    await eventually(allHoldPartitions, WAIT);
    await expectFoldOfLog();
  });

  it('divide the log again after all of them were silent for longer than their session, and the broker ended', async () => {
    for (const projector of projectors) projector.pause();
    try {
      await append(30);
      await pause(SESSION_MS + 1_000);
      await broker.restart();
    } finally {
      for (const projector of projectors) projector.resume();
    }
    await append(30);
    await eventually(allHoldPartitions, WAIT);
    await expectFoldOfLog();
  });

  it('resume from the log when the topic was replaced, and divide the new one afterwards', async () => {
    await eventually(allHoldPartitions, WAIT);
    const before = await handover();
    await kafka.withAdmin((admin) => admin.deleteTopics({ topics: [TOPICS.log] }));
    await append(100);
    await eventually(async () => expect(await handover()).not.toBe(before), WAIT);
    await append(100);
    await eventually(allHoldPartitions, WAIT);
    await expectFoldOfLog();
  });

  it('drop and count messages that are foreign, forged or copied from another partition', async () => {
    // The feed that counts must hold all partitions.
    await Promise.all(projectors.splice(0).map((projector) => projector.kill9()));
    const refused: string[] = [];
    const feed = new KafkaEventFeed({
      kafka,
      messages,
      topic: TOPICS.log,
      groupId: TOPICS.projectorGroup,
      onRefused: (refusal) => refused.push(refusal),
    });
    // Partitions can be followed once the topic has messages.
    await append(100);
    const { platform } = test;
    const loop = new ProjectionLoop({
      ...composeReadModels(platform),
      feed: platform.feed,
      partitioned: { feed, partitions: new PartitionCheckpoints(platform.redis, PROJECTIONS) },
      onProblem: () => undefined,
    });
    const abort = new AbortController();
    const ended = loop.run(abort.signal);
    const all = await allPartitions();
    await eventually(() => {
      const { source, phase } = loop.progress;
      return source !== 'log' && source.length === all.length && phase === 'live';
    }, WAIT);
    const far = { commit: 2n ** 62n, prepare: 2n ** 62n };
    const elsewhere = { topic: TOPICS.log, partition: 1 };
    await kafka.send(TOPICS.log, [
      { key: 'channel-1', value: 'not even JSON', partition: 0 },
      { ...new LogMessages('another secret').encodeWatermark(elsewhere, far) },
      { ...messages.encodeWatermark(elsewhere, far), partition: 2 },
    ]);
    await append(50);
    await eventually(() => new Set(refused).size === 3, WAIT);
    await expectFoldOfLog();
    expect([...new Set(refused)].toSorted()).toEqual(['foreign', 'forged', 'misplaced']);
    const head = await platform.feed.head();
    expect(comparePositions(await checkpoint(), head!)).toBeLessThanOrEqual(0);
    abort.abort();
    await ended;
  });
});

async function kindOf(items: AsyncGenerator<FeedItem, void>): Promise<string | undefined> {
  const { value } = await items.next();
  return value?.kind;
}

function startProjectors(count: number): void {
  for (let n = 0; n < count; n++) {
    projectors.push(
      startProjectorProcess({
        EVENTSTORE_URL: test.eventStore.url,
        REDIS_URL: test.redis.url,
        KAFKA_BROKERS: broker.brokers.join(','),
        KAFKA_TOPIC_PREFIX: PREFIX,
        PARLEY_TOKEN_SECRET: SECRET,
      }),
    );
  }
}

function details(): Promise<Record<string, unknown>[]> {
  return Promise.all(projectors.map((projector) => projector.detail()));
}

function partitionsOf({ partitions }: Record<string, unknown>): string[] {
  return Object.keys(typeof partitions === 'object' && partitions !== null ? partitions : {});
}

async function allHoldPartitions(): Promise<void> {
  const all = await details();
  expect(all.map(({ feed, phase }) => `${String(feed)} ${String(phase)}`)).toEqual(all.map(() => 'kafka live'));
  expect(all.flatMap(partitionsOf).toSorted()).toEqual(await allPartitions());
}

async function allPartitions(): Promise<string[]> {
  const offsets = await kafka.withAdmin((admin) => admin.fetchTopicOffsets(TOPICS.log));
  return offsets.map(({ partition }) => `${partition}`).toSorted();
}

let seed = 0;

/** Straight to the log: no gateway applies it. */
async function append(events: number, shouldContinue?: () => Promise<boolean>): Promise<void> {
  // New channels at each call.
  const run = `${++seed}`.padStart(4, '0');
  for (const turn of channelTurns({ events, eventsPerChannel: 20, active: 16 })) {
    if ((await shouldContinue?.()) === false) return;
    const stream = `${turn.stream.slice(0, -4)}${run}`;
    const toAppend = turn.events.map((event, index) => ({ ...event, id: idOf(event.id, run, index) }));
    // Ids of their own make a repeated append idempotent.
    const { kind } = await eventually(() => test.platform.store.append(stream, turn.after, toAppend), WAIT);
    if (kind !== 'appended') throw new Error(`${stream}: ${kind}`);
  }
}

function idOf(id: string, run: string, index: number): string {
  return `${id.slice(0, -6)}${run}${`${index}`.padStart(2, '0')}`;
}

/** At a steady rate, so that the log stays small however long the test takes. */
async function appendUntil(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await append(400, () => pause(25, signal).then(() => !signal.aborted));
}

/** Waits until everything that the log contains now is applied. */
async function progress(): Promise<void> {
  const head = await test.platform.feed.head();
  await eventually(async () => comparePositions(await checkpoint(), head!) >= 0, WAIT);
}

async function checkpoint() {
  const saved = await nodeWith(test.platform.redis, CHANNEL_PROJECTION_KEYS.checkpoint).get(
    CHANNEL_PROJECTION_KEYS.checkpoint,
  );
  return decodePosition(saved ?? '0/0');
}

const handover = (): Promise<string | null> => nodeWith(test.platform.redis, PARTITIONS).hget(PARTITIONS, 'handover');

async function expectFoldOfLog(): Promise<void> {
  await progress();
  const { platform } = test;
  const models = composeReadModels({ ...platform, redis: other.redis, readModel: new ReadModel(other.redis) });
  await rebuild({ feed: platform.feed, ...models }, { signal: AbortSignal.timeout(60_000) });
  const wanted = await dumpReadModels(other.redis);
  expect(Object.keys(wanted).length).toBeGreaterThan(50);
  expect(await dumpReadModels(platform.redis)).toEqual(wanted);
}

type Copy = readonly { readonly key: string; readonly dump: Buffer }[];

/** Atomic on one server; a cluster allows that for keys of one slot only. */
const atOnce = (node: Redis): ChainableCommander => (test.platform.redis.isOneServer ? node.multi() : node.pipeline());

async function copyOfRedis(): Promise<Copy> {
  const copies = test.platform.redis.nodes().map(async (node) => {
    const keys = await node.keys('*');
    const steps = atOnce(node);
    // Dumps are not valid UTF-8.
    for (const key of keys) steps.dumpBuffer(key);
    const dumps = (await steps.exec()) ?? [];
    return keys.flatMap((key, index) => {
      const dump = dumps[index]?.[1];
      return Buffer.isBuffer(dump) ? [{ key, dump }] : [];
    });
  });
  return (await Promise.all(copies)).flat();
}

/** Simulates a failover to a replica that lacks the newest writes: connections break, and the data is older. */
async function setBack(copy: Copy): Promise<void> {
  const { redis } = test.platform;
  for (const node of redis.nodes()) {
    const steps = atOnce(node).flushall();
    for (const { key, dump } of copy) if (redis.nodeOf(key) === node) steps.restore(key, 0, dump, 'REPLACE');
    const replies = (await steps.exec()) ?? [];
    expect(replies.filter(([error]) => error !== null)).toEqual([]);
  }
  await test.redis.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
}
