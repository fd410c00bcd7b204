/** The relay on a real broker that is killed and paused, and on brokers of any kind. */
import kafkajs from 'kafkajs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type GlobalPosition, NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import {
  comparePositions,
  connectEventStore,
  type EventStoreClients,
  type EventToAppend,
  type StoredEvent,
} from '#libs/platform/eventstore/index.ts';
import { KafkaConnection, LogMessages, logTopics, type LogTopics, type Watermark } from '#libs/platform/kafka/index.ts';
import { decodeCheckpoint } from '#libs/platform/kafka/relay-checkpoint.ts';
import { silentLog } from '#libs/platform/lifecycle/index.ts';
import { startTestEventStore } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { KAFKA_START_MS, startTestKafkaProcess, type TestKafkaProcess } from '#test/support/kafka/broker.ts';
import { runRelay } from '#test/support/kafka/running-relay.ts';
import { readEvents, readTopic } from '#test/support/kafka/topic-reader.ts';
import { logEvent, numberedEvents } from '#test/support/log-events.ts';
import { IN_CAMPAIGN } from '#test/support/rounds.ts';

const messages = new LogMessages('a secret of this test only');

let broker: TestKafkaProcess;
let eventStore: Awaited<ReturnType<typeof startTestEventStore>>;
let log: EventStoreClients;
let topics: LogTopics;
const running: { stop(): Promise<void> }[] = [];

beforeAll(async () => {
  [broker, eventStore] = await Promise.all([startTestKafkaProcess(), startTestEventStore()]);
  log = await connectEventStore({ url: eventStore.url });
}, KAFKA_START_MS);

afterAll(async () => {
  await Promise.all(running.map((relay) => relay.stop()));
  await log.close();
  await Promise.all([broker.stop(), eventStore.stop()]);
});

beforeEach(() => {
  topics = logTopics(`test-${newId()}`);
});

describe('relay', { timeout: 120_000 }, () => {
  it('sends every event of every stream, in the order of each, and saves its position', async () => {
    const relay = startRelay();
    const [a, b] = [newStream(), newStream()];
    await append(a, 0, numberedEvents(30));
    await append(b, 0, numberedEvents(5));
    await append(a, 30, numberedEvents(3, 30));
    const last = await log.feed.head();
    await eventually(() => relay.hasReached(last), WAIT);
    const carried = await carriedEvents();
    expect(revisionsOf(carried, a)).toEqual(numbers(33));
    expect(revisionsOf(carried, b)).toEqual(numbers(5));
    const [inLog] = await Array.fromAsync(log.store.readStream(a, { limit: 1 }));
    const { position, ...event } = carried.find(({ stream }) => stream === a)!;
    expect(event).toEqual({ ...inLog, position: undefined, createdMs: event.createdMs });
    expect(position).not.toBeNull();
    expect(Math.abs(event.createdMs - Date.now())).toBeLessThan(600_000);
    await relay.stop();
  });

  it('writes CloudEvents in binary mode, keyed by the stream', async () => {
    const relay = startRelay();
    const stream = newStream();
    await append(stream, 0, numberedEvents(1));
    const message = await eventually(async () => {
      const all = await readTopic(broker.brokers, topics.log);
      const found = all.find(({ key }) => key?.toString() === stream);
      if (found === undefined) throw new Error(`${stream} is not in Kafka`);
      return found;
    }, WAIT);
    const headers = Object.fromEntries(Object.entries(message.headers ?? {}).map(([name, text]) => [name, `${text}`]));
    expect(headers).toMatchObject({
      ce_specversion: '1.0',
      ce_source: '/parley/log',
      ce_type: 'Tested.v1',
      ce_subject: stream,
      ce_revision: '0',
      'content-type': 'application/json',
    });
    expect(JSON.parse(String(message.value))).toMatchObject({ data: { n: 0 }, metadata: { actor: { type: 'user' } } });
    await relay.stop();
  });

  it('writes watermarks to every partition, after the events', async () => {
    const relay = startRelay();
    const streams = Array.from({ length: 5 }, newStream);
    for (const stream of streams) await append(stream, 0, numberedEvents(3));
    const last = (await log.feed.head())!;
    const marked = await eventually(async () => {
      const newest = await newestWatermarks();
      if (newest.some((mark) => mark === null || comparePositions(mark, last) < 0)) throw new Error('not all have one');
      return newest;
    }, WAIT);
    expect(marked.length).toBeGreaterThan(1);
    await relay.stop();
    await expectTrueWatermarks();
  });

  it('one of several is active; when it stops, another resumes at its position', async () => {
    const stream = newStream();
    const [first, second] = [startRelay(), startRelay()];
    const active = await eventually(() => onlyActive([first, second]), WAIT);
    await append(stream, 0, numberedEvents(20));
    await eventually(async () => active.hasReached(await log.feed.head()), WAIT);
    await active.stop();
    const next = active === first ? second : first;
    await append(stream, 20, numberedEvents(20, 20));
    await eventually(async () => next.hasReached(await log.feed.head()), WAIT);
    expect(firstSights(revisionsOf(await carriedEvents(), stream))).toEqual(numbers(40));
    await next.stop();
  });

  it('another takes over also where the log is empty', async () => {
    const empty = await startTestEventStore();
    const logOfNothing = await connectEventStore({ url: empty.url });
    const first = startRelay(logOfNothing);
    await eventually(async () => expect(await first.saved()).not.toBeNull(), WAIT);
    await first.stop();
    const next = startRelay(logOfNothing);
    await eventually(() => next.progress.phase === 'active', WAIT);
    expect(next.progress.problem).toBeNull();
    await next.stop();
    await logOfNothing.close();
    await empty.stop();
  });

  it.runIf(IN_CAMPAIGN)('leaves no gap and keeps the order while the broker is killed and restarted', async () => {
    const [first, second] = [startRelay(), startRelay()];
    await eventually(() => onlyActive([first, second]), WAIT);
    const streams = [newStream(), newStream(), newStream()];
    let written = 0;
    const writing = new AbortController();
    const writer = (async () => {
      while (!writing.signal.aborted) {
        for (const stream of streams) await append(stream, written, numberedEvents(5, written));
        written += 5;
        // No more than a restarting broker on a busy machine can store.
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })();
    const before = first.progress.eventsSent + second.progress.eventsSent;
    await broker.kill9();
    await eventually(() => [first, second].some(({ progress }) => progress.problem !== null), WAIT);
    await broker.restart();
    await eventually(() => first.progress.eventsSent + second.progress.eventsSent > before + 15, WAIT);
    writing.abort();
    await writer;
    await eventually(async () => {
      const head = await log.feed.head();
      return first.hasReached(head) || second.hasReached(head);
    }, WAIT);
    const carried = await carriedEvents();
    for (const stream of streams) expect(firstSights(revisionsOf(carried, stream))).toEqual(numbers(written));
    await expectTrueWatermarks();
    await Promise.all([first.stop(), second.stop()]);
  });

  it('does not skip an event that Kafka refuses, and sends it once Kafka accepts it', async () => {
    const kafka = new KafkaConnection({ brokers: broker.brokers, log: silentLog });
    // Large enough for events of the other tests, too small for the one of this test.
    await kafka.ensureTopics([{ topic: topics.log, partitions: 1, settings: { 'max.message.bytes': '200000' } }]);
    const relay = startRelay();
    await eventually(async () => relay.hasReached(await log.feed.head()), WAIT);
    const stream = newStream();
    await append(stream, 0, [logEvent({ text: 'x'.repeat(300_000) }), ...numberedEvents(3, 1)]);
    // Twice: after the first refusal, a relay that had saved too much would continue after the event.
    await eventually(() => relay.refusals() >= 2, WAIT);
    expect(relay.progress.problem).toMatch(/larger|too large/i);
    await kafka.withAdmin((admin) =>
      admin.alterConfigs({
        validateOnly: false,
        resources: [
          {
            type: kafkajs.ConfigResourceTypes.TOPIC,
            name: topics.log,
            configEntries: [{ name: 'max.message.bytes', value: '4000000' }],
          },
        ],
      }),
    );
    await eventually(async () => relay.hasReached(await log.feed.head()), WAIT);
    expect(firstSights(revisionsOf(await carriedEvents(), stream))).toEqual(numbers(4));
    await relay.stop();
    await kafka.close();
  });

  it('creates topics that can be read and that keep every event, whatever the defaults of the broker', async () => {
    const kafka = new KafkaConnection({ brokers: broker.brokers, log: silentLog });
    const byDefault = (configEntries: { name: string; value: string }[]) =>
      kafka.withAdmin((admin) =>
        admin.alterConfigs({
          validateOnly: false,

          resources: [{ type: kafkajs.ConfigResourceTypes.BROKER, name: '1', configEntries }],
        }),
      );
    await byDefault([
      { name: 'compression.type', value: 'lz4' },
      { name: 'log.cleanup.policy', value: 'compact' },
    ]);
    const relay = startRelay();
    const stream = newStream();
    await append(stream, 0, numberedEvents(5));
    await eventually(async () => relay.hasReached(await log.feed.head()), WAIT);
    await relay.stop();
    await byDefault([]);
    await kafka.close();
    expect(revisionsOf(await carriedEvents(), stream)).toEqual(numbers(5));
    await expectTrueWatermarks();
  });

  it('resumes after a broker was silent', async () => {
    const relay = startRelay();
    const stream = newStream();
    await append(stream, 0, numberedEvents(5));
    await eventually(async () => relay.hasReached(await log.feed.head()), WAIT);
    await broker.pause();
    await append(stream, 5, numberedEvents(5, 5));
    await eventually(() => relay.progress.problem !== null, WAIT);
    await broker.resume();
    await eventually(async () => relay.hasReached(await log.feed.head()), WAIT);
    expect(firstSights(revisionsOf(await carriedEvents(), stream))).toEqual(numbers(10));
    await relay.stop();
  });
});

const WAIT = { timeoutMs: 60_000, everyMs: 100 };
const START: GlobalPosition = { commit: 0n, prepare: 0n };

/** The first occurrence of each event: nothing is missing if these are in order. */
const firstSights = (revisions: readonly number[]): number[] => [...new Set(revisions)];

function startRelay({ feed, store } = log) {
  let refusals = 0;
  const onRefused = () => void refusals++;
  const options = { feed, store, messages, topics, onProblem: () => undefined, onRefused };
  const relay = runRelay(options, { brokers: broker.brokers, requestTimeoutMs: 1_500 });
  const started = Object.assign(relay, {
    refusals: () => refusals,
    saved: () => relay.kafka.committedMetadata(topics.relayGroup, topics.relayLock),
    /** Kafka has acknowledged all events up to `head`, and the position is saved. */
    async hasReached(head: Awaited<ReturnType<typeof log.feed.head>>): Promise<boolean> {
      const { position, refusing } = decodeCheckpoint(await started.saved());
      return head !== null && refusing.size === 0 && comparePositions(position ?? START, head) >= 0;
    },
  });
  running.push(started);
  return started;
}

function onlyActive<R extends { readonly progress: ReturnType<typeof startRelay>['progress'] }>(
  relays: readonly R[],
): R {
  const [active, ...more] = relays.filter(({ progress }) => progress.phase === 'active');
  if (active === undefined || more.length > 0) throw new Error('not one relay is active');
  if (relays.some(({ progress }) => progress.phase === 'away')) throw new Error('a relay has not joined yet');
  return active;
}

/** As stored in Kafka, in the order of each stream. */
function carriedEvents(): Promise<readonly StoredEvent[]> {
  return readEvents(broker.brokers, topics.log, messages);
}

async function append(stream: string, from: number, events: readonly EventToAppend[]): Promise<void> {
  const result = await log.store.append(stream, from === 0 ? NO_EVENTS : streamRevision(from - 1), events);
  if (result.kind !== 'appended') throw new Error(`not appended to ${stream}`);
}

/** The greatest watermark of each partition; null where there is none. */
async function newestWatermarks(): Promise<readonly (GlobalPosition | null)[]> {
  const { partitions } = await decodedPartitions();
  return partitions.map((all) =>
    all
      .flatMap((one) => ('watermark' in one ? [one.watermark] : []))
      .reduce<GlobalPosition | null>((a, b) => (a !== null && comparePositions(a, b) > 0 ? a : b), null),
  );
}

/** No event up to a watermark occurs for the first time after that watermark. */
async function expectTrueWatermarks(): Promise<void> {
  const { partitions } = await decodedPartitions();
  const untrue = partitions.flatMap((all) => {
    const seen = new Set<string>();
    let marked: GlobalPosition = { commit: 0n, prepare: 0n };
    return all.filter((one) => {
      if ('watermark' in one) {
        if (comparePositions(one.watermark, marked) > 0) marked = one.watermark;
        return false;
      }
      const isFirstSight = !seen.has(one.id);
      seen.add(one.id);
      return isFirstSight && one.position !== null && comparePositions(one.position, marked) <= 0;
    });
  });
  expect(untrue).toEqual([]);
}

async function decodedPartitions() {
  const kafka = new KafkaConnection({ brokers: broker.brokers, log: silentLog });
  const { topics: found } = await kafka.withAdmin((admin) => admin.fetchTopicMetadata({ topics: [topics.log] }));
  const partitions: (StoredEvent | Watermark)[][] = Array.from({ length: found[0]?.partitions.length ?? 0 }, () => []);
  for (const message of await readTopic(broker.brokers, topics.log)) {
    const decoded = messages.decode(message, message);
    if (typeof decoded === 'string') throw new Error(`a ${decoded} message`);
    partitions[message.partition]?.push(decoded);
  }
  return { partitions };
}

const newStream = (): string => `relayed-${newId()}`;
const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

function revisionsOf(events: readonly StoredEvent[], stream: string): number[] {
  return events.filter((event) => event.stream === stream).map(({ revision }) => revision);
}
