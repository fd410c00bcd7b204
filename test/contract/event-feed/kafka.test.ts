import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { comparePositions, connectEventStore } from '#libs/platform/eventstore/index.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import { KafkaConnection, KafkaEventFeed, LogMessages, logTopics, Relay } from '#libs/platform/kafka/index.ts';
import type { Refusal } from '#libs/platform/kafka/index.ts';
import { silentLog } from '#libs/platform/lifecycle/index.ts';
import { startTestEventStore } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { KAFKA_START_MS, startTestKafkaProcess } from '#test/support/kafka/broker.ts';
import { numberedEvents } from '#test/support/log-events.ts';
import { describeEventFeed } from './contract.ts';

const messages = new LogMessages('a secret of this test only');
const DELIVERY_MS = 60_000;

/** An event store, a broker, and a relay between them. */
async function startRelayedLog() {
  const [broker, server] = await Promise.all([startTestKafkaProcess(), startTestEventStore()]);
  const log = connectEventStore({ url: server.url });
  const kafka = new KafkaConnection({ brokers: broker.brokers, log: silentLog, requestTimeoutMs: 2_000 });
  const topics = logTopics(`test-${newId()}`);
  const relay = new Relay({ feed: log.feed, kafka, messages, topics, onProblem: () => undefined });
  const relaying = new AbortController();
  const relayed = relay.run(relaying.signal);
  await eventually(() => relay.progress.phase === 'active', { timeoutMs: DELIVERY_MS });
  /** Appends, and waits until that is in Kafka: what a feed of Kafka calls the end is the end there. */
  const append: EventStore['append'] = async (...call) => {
    const result = await log.store.append(...call);
    await eventually(
      () => {
        const reached = relay.progress.position;
        return (
          result.kind !== 'appended' ||
          result.position === null ||
          (reached !== null && comparePositions(reached, result.position) >= 0)
        );
      },
      { timeoutMs: DELIVERY_MS, everyMs: 5 },
    );
    return result;
  };
  return {
    broker,
    kafka,
    topics,
    head: () => log.feed.head(),
    store: {
      append,
      readStream: log.store.readStream.bind(log.store),
      ping: log.store.ping.bind(log.store),
      close: log.store.close.bind(log.store),
    } satisfies EventStore,
    async stop() {
      relaying.abort();
      await relayed;
      await kafka.close();
      await log.close();
      await Promise.all([broker.stop(), server.stop()]);
    },
  };
}

describeEventFeed(
  'Kafka',
  async () => {
    const log = await startRelayedLog();
    const feed = new KafkaEventFeed({
      ...log,
      messages,
      topic: log.topics.log,
      // Members of one group share the streams, and go on where the group is: the suite's readers want all of them.
      groupId: () => `test-${newId()}`,
    });
    return { feed, store: log.store, interrupt: () => log.broker.restart(), stop: () => log.stop() };
  },
  {
    noCheckpoints: 'a member of a group does not know what was delivered to the others',
    setUpMs: KAFKA_START_MS,
    deliveryMs: DELIVERY_MS,
    // Each is the restart of a broker.
    interruptions: 1,
  },
);

describe('event feed: Kafka, as a consumer group', { timeout: 120_000 }, () => {
  let log: Awaited<ReturnType<typeof startRelayedLog>>;
  beforeAll(async () => {
    log = await startRelayedLog();
  }, KAFKA_START_MS);
  afterAll(() => log.stop());

  it('shares the streams among its members, and goes on for one that has gone', async () => {
    const prefix = `shared${newId().replaceAll('-', '')}-`;
    const streams = Array.from({ length: 24 }, (_, n) => `${prefix}${n}`);
    const members = [startMember(prefix), startMember(prefix)];
    await eventually(() => members.every(({ isCaughtUp }) => isCaughtUp()), { timeoutMs: DELIVERY_MS });
    for (const stream of streams) await log.store.append(stream, NO_EVENTS, numberedEvents(3));
    const all = streams.flatMap((stream) => [0, 1, 2].map((revision) => `${stream}@${revision}`)).toSorted();
    const seen = () => members.flatMap((member) => member.seen);
    await eventually(() => new Set(seen()).size === all.length, { timeoutMs: DELIVERY_MS });
    expect([...new Set(seen())].toSorted()).toEqual(all);
    for (const member of members) expect(member.seen.length).toBeGreaterThan(0);

    const [leaving, staying] = members;
    await leaving?.stop();
    const later = streams.map((stream) => `${stream}-later`);
    for (const stream of later) await log.store.append(stream, NO_EVENTS, numberedEvents(1));
    const wanted = later.map((stream) => `${stream}@0`).toSorted();
    const news = () => [...new Set(staying?.seen.filter((event) => event.includes('-later@')))].toSorted();
    await eventually(() => news().length === wanted.length, { timeoutMs: DELIVERY_MS });
    expect(news()).toEqual(wanted);
    await staying?.stop();
  });

  it('delivers again what a member had taken and not acknowledged by asking for more', async () => {
    const prefix = `taken${newId().replaceAll('-', '')}-`;
    await log.store.append(`${prefix}a`, NO_EVENTS, numberedEvents(10));
    const abort = new AbortController();
    const options = { from: 'start', streamPrefixes: [prefix], maxBatch: 4, signal: abort.signal } as const;
    const items = feedOf(prefix).subscribe(options)[Symbol.asyncIterator]();
    expect((await items.next()).value).toMatchObject({ kind: 'events', events: { length: 4 } });
    abort.abort();
    expect(await items.next()).toEqual({ done: true, value: undefined });
    const next = startMember(prefix);
    await eventually(() => next.isCaughtUp(), { timeoutMs: DELIVERY_MS });
    expect(next.seen).toEqual(Array.from({ length: 10 }, (_, n) => `${prefix}a@${n}`));
    await next.stop();
  });

  it('drops what is foreign or forged, and counts it', async () => {
    const prefix = `mixed${newId().replaceAll('-', '')}-`;
    const refused: Refusal[] = [];
    const stream = `${prefix}a`;
    const appended = await log.store.append(stream, NO_EVENTS, numberedEvents(1));
    const position = appended.kind === 'appended' ? appended.position : null;
    const event = {
      stream,
      revision: streamRevision(1),
      position,
      id: newId(),
      type: 'Tested.v1',
      data: {},
      metadata: {},
    };
    await log.kafka.send(log.topics.log, [
      { key: stream, value: 'not even JSON' },
      new LogMessages('another secret').encode({ ...event, createdMs: Date.now() }),
    ]);
    const member = startMember(prefix, (refusal) => refused.push(refusal));
    await eventually(() => member.isCaughtUp(), { timeoutMs: DELIVERY_MS });
    expect(member.seen).toEqual([`${stream}@0`]);
    expect(refused.toSorted()).toEqual(['foreign', 'forged']);
    await member.stop();
  });

  function feedOf(prefix: string, onRefused: (refusal: Refusal) => void = () => undefined) {
    return new KafkaEventFeed({
      ...log,
      messages,
      topic: log.topics.log,
      groupId: () => `group-of-${prefix}`,
      onRefused,
    });
  }

  function startMember(prefix: string, onRefused?: (refusal: Refusal) => void) {
    const feed = feedOf(prefix, onRefused);
    const abort = new AbortController();
    const seen: string[] = [];
    let caughtUp = false;
    const ended = (async () => {
      const items = feed.subscribe({ from: 'start', streamPrefixes: [prefix], signal: abort.signal });
      for await (const item of items) {
        if (item.kind === 'caught-up') caughtUp = true;
        if (item.kind === 'events') seen.push(...item.events.map(({ stream, revision }) => `${stream}@${revision}`));
      }
    })();
    return {
      seen,
      isCaughtUp: () => caughtUp,
      async stop() {
        abort.abort();
        await ended;
      },
    };
  }
});
