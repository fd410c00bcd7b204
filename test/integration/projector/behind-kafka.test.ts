/** Read models are complete whatever the relay to Kafka does. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { newId } from '#libs/kernel/ids.ts';
import { comparePositions, encodePosition } from '#libs/platform/eventstore/index.ts';
import {
  KafkaConnection,
  KafkaEventFeed,
  LogMessages,
  logTopics,
  publishedIn,
  Relay,
} from '#libs/platform/kafka/index.ts';
import { silentLog } from '#libs/platform/lifecycle/index.ts';
import { PartitionCheckpoints } from '#libs/platform/readmodel/index.ts';
import { composeReadModels, PROJECTIONS } from '#services/features.ts';
import { ProjectionLoop } from '#services/projector/projection-loop.ts';
import { channelTurns } from '#test/bench/channel-log.ts';
import { eventually } from '#test/support/eventually.ts';
import { KAFKA_START_MS, startTestKafka, type TestKafka } from '#test/support/kafka/broker.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import type { TestRedis } from '#test/support/redis.ts';

const WAIT = { timeoutMs: 60_000, everyMs: 100 };
const BEHIND_MS = 2_000;

let broker: TestKafka;
let test: TestPlatform<TestRedis>;
let kafka: KafkaConnection;

beforeAll(async () => {
  [broker, test] = await Promise.all([startTestKafka(), startTestPlatform({ redis: 'own' })]);
  kafka = new KafkaConnection({ brokers: broker.brokers, log: silentLog });
}, KAFKA_START_MS);

afterAll(async () => {
  await kafka?.close();
  await Promise.all([test?.stop(), broker?.stop()]);
});

it('projectors follow the log while the relay is stuck, also after a start, and return to Kafka', async () => {
  const topics = logTopics(`test-${newId()}`);
  const startRelay = () => relayOf(topics);
  const relay = startRelay();
  await append();
  const lost: string[] = [];
  const running = loopOf(topics, (reason) => lost.push(reason));
  await eventually(() => running.loop.progress.source !== 'log' && running.loop.progress.phase === 'live', WAIT);
  await append();
  await expectAtHead(running.loop);
  expect(lost).toEqual([]);

  await relay.stop();
  await append();
  await expectAtHead(running.loop);
  expect(lost).toEqual([expect.stringContaining('no progress')]);
  // It does not return to partitions that lack events.
  await append();
  await expectAtHead(running.loop);
  expect(running.loop.progress.source).toBe('log');
  await running.stop();

  const again = startRelay();
  const second = loopOf(topics, () => undefined);
  await eventually(() => second.loop.progress.source !== 'log' && second.loop.progress.phase === 'live', WAIT);
  await again.stop();
  await second.stop();
  // Not applied by a process that crashed, and not published: applied before the next one is live.
  await append();
  const phases: [string, boolean][] = [];
  const head = (await test.platform.feed.head())!;
  const third = loopOf(
    topics,
    () => undefined,
    ({ phase, position }) => phases.push([phase, position !== null && comparePositions(position, head) >= 0]),
  );
  await eventually(() => third.loop.progress.phase === 'live', WAIT);
  expect(phases.find(([phase]) => phase === 'live')).toEqual(['live', true]);
  await third.stop();
}, 240_000);

function loopOf(
  topics: ReturnType<typeof logTopics>,
  onLost: (reason: string) => void,
  onProgress: (progress: ProjectionLoop['progress']) => void = () => undefined,
) {
  const { platform } = test;
  const feed = new KafkaEventFeed({
    kafka,
    messages: new LogMessages('a secret of this test only'),
    topic: topics.log,
    groupId: topics.projectorGroup,
    published: async () => publishedIn(topics.log, await kafka.committedMetadata(topics.relayGroup, topics.relayLock)),
  });
  const loop = new ProjectionLoop({
    ...composeReadModels(platform),
    feed: platform.feed,
    partitioned: { feed, partitions: new PartitionCheckpoints(platform.redis, PROJECTIONS) },
    behindMs: BEHIND_MS,
    onLost,
    onProgress,
    onProblem: () => undefined,
  });
  const abort = new AbortController();
  const ended = loop.run(abort.signal);
  return {
    loop,
    stop: () => {
      abort.abort();
      return ended;
    },
  };
}

function relayOf(topics: ReturnType<typeof logTopics>) {
  const { feed, store } = test.platform;
  const messages = new LogMessages('a secret of this test only');
  const relay = new Relay({ feed, store, kafka, messages, topics, onProblem: () => undefined });
  const abort = new AbortController();
  const ended = relay.run(abort.signal);
  return {
    stop: () => {
      abort.abort();
      return ended;
    },
  };
}

async function expectAtHead(loop: ProjectionLoop): Promise<void> {
  const head = (await test.platform.feed.head())!;
  await eventually(() => {
    const { position } = loop.progress;
    if (position === null || comparePositions(position, head) < 0) {
      throw new Error(`at ${position && encodePosition(position)} of ${encodePosition(head)}`);
    }
  }, WAIT);
}

/** Events in a new channel, which nothing has applied. */
async function append(): Promise<void> {
  const id = newId();
  for (const turn of channelTurns({ events: 20, eventsPerChannel: 20, active: 1 })) {
    const events = turn.events.map((event) => ({ ...event, id: newId() }));
    const { kind } = await test.platform.store.append(`channel-${id}`, turn.after, events);
    if (kind !== 'appended') throw new Error(kind);
  }
}
