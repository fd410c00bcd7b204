import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import {
  connectRedis,
  type RedisClient,
  type TopicSubscription,
  TopicSubscriptions,
  waitForRedis,
} from '#libs/platform/redis/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';

let server: TestRedis;
let redis: RedisClient;
let topics: TopicSubscriptions;

beforeEach(async () => {
  server = await startTestRedis();
  redis = connectRedis(server.url);
  await waitForRedis(redis, 60_000);
  topics = new TopicSubscriptions(redis);
});
afterEach(async () => {
  topics.close();
  redis.close();
  await server.stop();
});

const publish = (topic: string, message: string): Promise<unknown> =>
  redis.send(topic, (node) => node.spublish(topic, message));

interface RecordingSubscription extends TopicSubscription {
  /** All calls of the subscriber, in order. */
  readonly calls: string[];
}

function listen(topic: string): RecordingSubscription {
  const calls: string[] = [];
  const subscription = topics.subscribe(topic, {
    onMessage: (message) => calls.push(message.toString()),
    onListening: () => calls.push('(listening)'),
    onInterrupted: () => calls.push('(interrupted)'),
  });
  return {
    calls,
    get listening() {
      return subscription.listening;
    },
    stop: () => subscription.stop(),
  };
}

async function listening(...subscriptions: readonly RecordingSubscription[]): Promise<void> {
  await eventually(() => subscriptions.every((one) => one.listening));
}

/** Count of the topic's subscribers in Redis. */
async function subscribersInRedis(topic: string): Promise<number> {
  const reply = await server.command('PUBSUB', 'SHARDNUMSUB', topic);
  return Array.isArray(reply) ? Number(reply[1]) : Number.NaN;
}

describe('subscriptions to topics', () => {
  it('receive messages once they listen, in order, byte for byte', async () => {
    const one = listen('topic{a}');
    expect([one.listening, one.calls]).toEqual([false, []]);
    await listening(one);
    const messages = Array.from({ length: 100 }, (_, n) => `${n} – ü 🎈\nsecond line`);
    await Promise.all(messages.map((message) => publish('topic{a}', message)));
    await eventually(() => one.calls.length === 101);
    expect(one.calls).toEqual(['(listening)', ...messages]);
  });

  it('receive only their own topics', async () => {
    const [a, b] = [listen('topic{a}'), listen('topic{b}')];
    await listening(a, b);
    await publish('topic{a}', 'to a');
    await publish('topic{b}', 'to b');
    await eventually(() => b.calls.length === 2);
    expect([a.calls, b.calls]).toEqual([
      ['(listening)', 'to a'],
      ['(listening)', 'to b'],
    ]);
  });

  it('share one subscription in Redis, which ends with the last of them', async () => {
    const first = listen('topic{a}');
    await listening(first);
    const second = listen('topic{a}');
    expect(second.listening).toBe(false);
    await listening(second);
    expect(await publish('topic{a}', 'for both')).toBe(1);
    await eventually(() => first.calls.includes('for both') && second.calls.includes('for both'));
    first.stop();
    expect(first.listening).toBe(false);
    await publish('topic{a}', 'for one');
    await eventually(() => second.calls.includes('for one'));
    expect(first.calls).toEqual(['(listening)', 'for both']);
    second.stop();
    await eventually(async () => (await subscribersInRedis('topic{a}')) === 0);
  });

  it('listen again when they were ended and started in one turn, or right after it', async () => {
    const first = listen('topic{a}');
    await listening(first);
    for (let round = 0; round < 20; round++) {
      listen('topic{a}').stop();
      await new Promise((resolve) => setImmediate(resolve));
    }
    first.stop();
    const second = listen('topic{a}');
    await listening(second);
    second.stop();
    await new Promise((resolve) => setImmediate(resolve));
    const third = listen('topic{a}');
    await listening(third);
    expect(await publish('topic{a}', 'hello')).toBe(1);
    await eventually(() => third.calls.includes('hello'));
    expect([first.calls, second.calls]).toEqual([['(listening)'], ['(listening)']]);
  });

  it('do not call a subscriber that was stopped before it listened', async () => {
    const stopped = listen('topic{a}');
    stopped.stop();
    const other = listen('topic{b}');
    await listening(other);
    await publish('topic{a}', 'without subscriber');
    await publish('topic{b}', 'to b');
    await eventually(() => other.calls.length === 2);
    expect(stopped.calls).toEqual([]);
  });

  it('report that they miss messages when Redis dies, and listen again when it is back', async () => {
    const both = [listen('topic{a}'), listen('topic{b}')] as const;
    await listening(...both);
    await server.kill9();
    await eventually(() => both.every(({ listening, calls }) => !listening && calls.at(-1) === '(interrupted)'));
    const late = listen('topic{c}');
    await server.restart();
    await listening(...both, late);
    await waitForRedis(redis, 60_000);
    await publish('topic{a}', 'again');
    await publish('topic{c}', 'late');
    await eventually(() => both[0].calls.includes('again') && late.calls.includes('late'));
    expect(both.map(({ calls }) => calls)).toEqual([
      ['(listening)', '(interrupted)', '(listening)', 'again'],
      ['(listening)', '(interrupted)', '(listening)'],
    ]);
    expect(late.calls).toEqual(['(listening)', 'late']);
  });

  it('detect a Redis that stops answering without closing its connections', async () => {
    const one = listen('topic{a}');
    await listening(one);
    await server.pause();
    await eventually(() => one.calls.at(-1) === '(interrupted)');
    await server.resume();
    await listening(one);
    expect(one.calls).toEqual(['(listening)', '(interrupted)', '(listening)']);
  });

  it('reconnect when Redis closes their connection', async () => {
    const one = listen('topic{a}');
    await listening(one);
    await server.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await eventually(() => one.calls.length === 3);
    expect(one.calls).toEqual(['(listening)', '(interrupted)', '(listening)']);
  });

  it('can be many, over one connection, before and after it is lost', async () => {
    const many = Array.from({ length: 3_000 }, (_, n) => listen(`topic{${n}}`));
    await listening(...many);
    expect(
      String(await server.command('CLIENT', 'LIST', 'TYPE', 'pubsub'))
        .trim()
        .split('\n'),
    ).toHaveLength(1);
    await server.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await eventually(() => many.every(({ calls }) => calls.length === 3));
    await Promise.all(many.map((_, n) => publish(`topic{${n}}`, `to ${n}`)));
    await eventually(() => many.every(({ calls }, n) => calls.at(-1) === `to ${n}`));
    for (const one of many) one.stop();
    await eventually(async () => (await shardChannels()).length === 0);
  });

  it('open no connection before the first of them', async () => {
    expect(String(await server.command('CLIENT', 'LIST', 'TYPE', 'pubsub')).trim()).toBe('');
  });
});

async function shardChannels(): Promise<unknown[]> {
  const reply = await server.command('PUBSUB', 'SHARDCHANNELS');
  // Without the topic by which a connection knows that it is open: it stays.
  return Array.isArray(reply) ? reply.filter((name) => String(name).startsWith('topic{')) : ['no answer'];
}
