/* Publications of a process that is the only subscriber of their topic need no pub/sub; another one misses none. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { ReadModel, type ApplyOutcome, type Publication } from '#libs/platform/readmodel/read-model.ts';
import { connectRedis, type RedisClient, TopicSubscriptions, waitForRedis } from '#libs/platform/redis/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestRedisPair } from '#test/support/redis-pair.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';

let server: TestRedis;
let redis: RedisClient;
let topics: TopicSubscriptions;
let readModel: ReadModel;
let others: TopicSubscriptions;
let topic: string;
let next: number;

beforeAll(async () => {
  server = await startTestRedis();
  redis = connectRedis(server.url);
  await waitForRedis(redis, 60_000);
});
afterAll(async () => {
  redis.close();
  await server.stop();
});

beforeEach(() => {
  topic = `parley:live:{${newId()}}:topic`;
  next = 0;
  topics = new TopicSubscriptions(redis);
  others = new TopicSubscriptions(redis);
  readModel = new ReadModel(redis, topics);
});
afterEach(() => {
  topics.close();
  others.close();
});

interface Recorder {
  readonly received: string[];
  interruptions: number;
  stop(): void;
}

async function subscribe(to: TopicSubscriptions): Promise<Recorder> {
  const recorder: Recorder = { received: [], interruptions: 0, stop: () => undefined };
  const { stop } = await new Promise<{ stop(): void }>((resolve) => {
    const subscription = to.subscribe(topic, {
      onMessage: (message) => recorder.received.push(message.toString()),
      onListening: () => resolve(subscription),
      onInterrupted: () => (recorder.interruptions += 1),
    });
  });
  recorder.stop = stop;
  return recorder;
}

function applyNext(more: Pick<Publication, 'followsEarlier'> = {}): Promise<ApplyOutcome[]> {
  const revision = streamRevision(next++);
  const publication = { topic, message: `m${revision}`, alsoOfDuplicates: true, ...more };
  const revisionKey = topic.replace('topic', 'revision');
  return readModel.apply([{ revisionKey, first: revision, last: revision, operations: [], lists: [], publication }]);
}

/** Once the process knows that its connection receives messages. */
async function subscribeAlone(): Promise<Recorder> {
  const own = await subscribe(topics);
  await eventually(() => expect(topics.own(topic)).not.toBeNull());
  return own;
}

// In a cluster, topics move between nodes: everything is published there.
describe.skipIf(process.env['PARLEY_TEST_REDIS'] === 'cluster')('publications', () => {
  it('reach the process itself with the reply while it is the only subscriber, and others once they subscribe', async () => {
    const own = await subscribeAlone();
    expect(await applyNext()).toMatchObject([{ kind: 'applied', isOwn: true }]);
    expect(own.received).toEqual(['m0']);
    const other = await subscribe(others);
    expect((await applyNext())[0]).not.toHaveProperty('isOwn');
    await eventually(() => expect([own.received, other.received]).toEqual([['m0', 'm1'], ['m1']]));
    other.stop();
    await eventually(async () => expect(await applyNext()).toMatchObject([{ isOwn: true }]));
    await eventually(() => expect(own.received).toEqual(Array.from({ length: next }, (_, index) => `m${index}`)));
  });

  it('do not overtake a message that was published before, where they must follow it', async () => {
    const own = await subscribeAlone();
    const publish = () => redis.send(topic, (node) => node.spublish(topic, `before m${next}`));
    const expected: string[] = [];
    for (let pair = 0; pair < 30; pair++) {
      expected.push(`before m${next}`, `m${next}`);
      // Both are on their way together, the message first.
      await Promise.all([publish(), applyNext({ followsEarlier: true })]);
    }
    await eventually(() => expect(own.received).toHaveLength(expected.length));
    expect(own.received).toEqual(expected);
  });

  it('reach the only subscriber where that is another process', async () => {
    const other = await subscribe(others);
    await applyNext();
    await eventually(() => expect(other.received).toEqual(['m0']));
  });

  it('reach a process that a failover has left at the demoted master, which is a replica now', async () => {
    const pair = await startTestRedisPair();
    const idle = connectRedis(pair.url);
    await waitForRedis(idle, 60_000);
    others = new TopicSubscriptions(idle);
    const other = await subscribe(others);
    await pair.failover();
    const info = async () => String(await pair.command('INFO', 'replication'));
    await eventually(async () => expect(await info()).toContain('state=online'));
    const current = connectRedis(pair.url);
    await waitForRedis(current, 60_000);
    topics = new TopicSubscriptions(current);
    readModel = new ReadModel(current, topics);
    await subscribeAlone();
    await applyNext();
    await eventually(() => expect(other.received).toEqual(['m0']));
    for (const client of [idle, current]) client.close();
    await pair.stop();
  });

  it('reach a process that subscribes when this one has left the topic, also while the write is on its way', async () => {
    const own = await subscribeAlone();
    const other = await subscribe(others);
    own.stop();
    // Redis executes the write before or after the end of the subscription.
    await Promise.all([applyNext(), applyNext()]);
    await eventually(() => expect(other.received).toEqual(['m0', 'm1']));
    await eventually(() => expect(topics.own(topic)).toBeNull());
  });

  it('are published where Redis has closed the connection for subscriptions, and this process has not noticed', async () => {
    const own = await subscribeAlone();
    const other = await subscribe(others);
    const [node] = redis.nodes();
    const clients = String(await node?.call('CLIENT', 'LIST', 'TYPE', 'pubsub'));
    const ids = [...clients.matchAll(/^id=(\d+)/gm)].map(([, id = '']) => Number(id)).toSorted((a, b) => a - b);
    // The first of the two has been opened first. In one write: the process cannot notice between them.
    const killed = node?.call('CLIENT', 'KILL', 'ID', String(ids[0]));
    await Promise.all([killed, applyNext()]);
    await eventually(() => expect([own.interruptions, other.received]).toEqual([1, ['m0']]));
  });

  it('may be missed where the outcome of the write is unknown: subscribers catch up', async () => {
    await subscribeAlone();
    const states: string[] = [];
    topics.subscribe(topic, {
      onMessage: () => undefined,
      onListening: () => states.push('listening'),
      onInterrupted: () => states.push('interrupted'),
    });
    await eventually(() => expect(states).toEqual(['listening']));
    await server.pause();
    await expect(applyNext()).rejects.toMatchObject({ code: 'store_unavailable' });
    // As after a lost connection: what is only being opened has to catch up as well.
    expect(states).toEqual(['listening', 'interrupted', 'listening']);
    await server.resume();
  });
});
