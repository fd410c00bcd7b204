/** The public events in Kafka: every event of a channel, and no internal data. */
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { connectEventStore, type EventStoreClients, type StoredEvent } from '#libs/platform/eventstore/index.ts';
import { KafkaConnection, LogMessages, logTopics, Relay } from '#libs/platform/kafka/index.ts';
import { silentLog } from '#libs/platform/lifecycle/index.ts';
import { publicMessageHeaders } from '#libs/platform/live/index.ts';
import { composePublicMessages, publicEventTypes } from '#services/features.ts';
import { startTestEventStore } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { KAFKA_START_MS, startSharedTestKafka, type TestKafka } from '#test/support/kafka/broker.ts';
import { readTopic } from '#test/support/kafka/topic-reader.ts';
import { logMetadata } from '#test/support/log-events.ts';

const FEATURES = join(import.meta.dirname, '../../../libs/features');
const CHANNEL_ID = '01a1fd41-60a1-72e0-b528-774b668e3498';
const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const metadata = {
  ...logMetadata('command-1'),
  actor: { type: 'user', id: 'user-1', keyId: 'key-1' } as const,
  $correlationId: 'request-1',
  organizationId: 'organization-1',
  idempotencyKey: 'hunter2',
  traceparent: TRACE,
};

/** One stored event of every type in a channel's stream. */
async function samples(): Promise<readonly { readonly type: string; readonly data: object }[]> {
  const files = ['channel/channel', 'interaction/interaction', 'reaction/reaction'];
  const found: { type: string; data: object }[] = [];
  for (const file of files) {
    const text = await readFile(join(FEATURES, `channels/${file}.events.samples.json`), 'utf8');
    const byType: Record<string, object> = JSON.parse(text);
    found.push(...Object.entries(byType).map(([type, data]) => ({ type, data })));
  }
  return found;
}

function storedEvent(over: Partial<StoredEvent>): StoredEvent {
  return {
    stream: `channel-${CHANNEL_ID}`,
    revision: streamRevision(6),
    position: { commit: 1n, prepare: 1n },
    id: newId(),
    type: 'ChannelRenamed.v1',
    data: { name: 'Another name' },
    metadata,
    createdMs: Date.parse('2026-01-31T12:00:00.000Z'),
    ...over,
  };
}

describe('a public event', () => {
  const corrupt: Error[] = [];
  const messages = composePublicMessages((error) => corrupt.push(error));

  it('exists for every event of a channel, and has exactly the members of its schema', async () => {
    const published = new Set<string>();
    for (const sample of await samples()) {
      const message = messages.encode(storedEvent(sample))!;
      expect(message.key).toBe(`channel-${CHANNEL_ID}`);
      expect(publicMessageHeaders.strict().parse(message.headers)).toEqual(message.headers);
      const type = message.headers['ce_type']?.slice('parley.'.length);
      const data: unknown = JSON.parse(message.value);
      const schema = publicEventTypes.find((one) => one.type === type)?.data;
      // Parsing drops members that the schema does not declare.
      expect(schema?.parse(data)).toEqual(data);
      published.add(String(type));
      expect(JSON.stringify(message)).not.toMatch(/hunter2|command-1/);
    }
    expect([...published].toSorted()).toEqual(publicEventTypes.map(({ type }) => type).toSorted());
  });

  it('has the channel, the time, the sequence and the trace of the request', () => {
    const event = storedEvent({});
    expect(messages.encode(event)?.headers).toEqual({
      ce_specversion: '1.0',
      ce_id: event.id,
      ce_source: '/parley/channels',
      ce_type: 'parley.channel.updated',
      ce_subject: CHANNEL_ID,
      ce_time: metadata.at,
      ce_sequence: '0000000000000007',
      ce_organizationid: 'organization-1',
      ce_authtype: 'app_user',
      ce_authid: 'user-1',
      ce_authclaims: '{"key_id":"key-1","on_behalf_of":null}',
      ce_correlationid: 'request-1',
      traceparent: TRACE,
      'content-type': 'application/json',
    });
  });

  it('does not exist for streams of other categories', () => {
    for (const stream of ['key-1', 'user-1', 'organization-1', 'channels']) {
      expect(messages.encode(storedEvent({ stream, type: 'KeyCreated.v1' }))).toBeNull();
    }
  });

  it('keeps the sequence contiguous where the event is unknown or invalid', () => {
    for (const over of [{ type: 'FromTheFuture.v1' }, { data: { name: 7 } }, { metadata: null }]) {
      const message = messages.encode(storedEvent(over));
      expect(message?.value).toBe('null');
      expect(message?.headers).toMatchObject({ ce_type: 'parley.unknown', ce_sequence: '0000000000000007' });
    }
    expect(corrupt).toHaveLength(2);
  });
});

describe('the topic of public events', { timeout: 180_000 }, () => {
  const WAIT = { timeoutMs: 120_000, everyMs: 200 };
  const topics = logTopics('parley');
  let broker: TestKafka;
  let eventStore: Awaited<ReturnType<typeof startTestEventStore>>;
  let log: EventStoreClients;
  let kafka: KafkaConnection;

  beforeAll(async () => {
    [broker, eventStore] = await Promise.all([startSharedTestKafka(), startTestEventStore()]);
    log = await connectEventStore({ url: eventStore.url });
    kafka = new KafkaConnection({ brokers: broker.brokers, log: silentLog });
  }, KAFKA_START_MS);
  afterAll(async () => {
    await kafka?.close();
    await log?.close();
    await Promise.all([broker?.stop(), eventStore?.stop()]);
  });

  it('is read by the documented program: each event of each channel once, and in order', async () => {
    const channels = Array.from({ length: 3 }, () => newId());
    const renamed = (n: number) => ({ id: newId(), type: 'ChannelRenamed.v1', data: { name: `${n}` }, metadata });
    for (const channel of channels) {
      const events = Array.from({ length: 20 }, (_, n) => renamed(n));
      await log.store.append(`channel-${channel}`, NO_EVENTS, events);
    }
    await log.store.append('key-1', NO_EVENTS, [{ id: newId(), type: 'KeyCreated.v1', data: {}, metadata }]);
    await relayed();
    // Again from the beginning, as a relay whose position was lost: now every event is stored twice.
    await kafka.withAdmin((admin) => admin.deleteGroups([topics.relayGroup]));
    await relayed();
    const inTopic = await readTopic(broker.brokers, topics.events);
    expect(inTopic.length).toBeGreaterThanOrEqual(120);
    expect(inTopic.filter(({ key }) => !String(key).startsWith('channel-'))).toEqual([]);
    expect((await readTopic(broker.brokers, topics.log)).some(({ key }) => String(key) === 'key-1')).toBe(true);

    const lines = await printedByExample(60);
    for (const channel of channels) {
      const wanted = Array.from({ length: 20 }, (_, n) => `${channel} ${n + 1} parley.channel.updated`);
      expect(lines.filter((line) => line.startsWith(channel))).toEqual(wanted);
    }
  });

  /** Resolves when Kafka has all events and the position is saved. */
  async function relayed(): Promise<void> {
    const publicMessages = composePublicMessages(() => undefined);
    const messages = new LogMessages('a secret of this test only');
    const { feed, store } = log;
    const relay = new Relay({ feed, store, kafka, messages, publicMessages, topics, onProblem: () => undefined });
    const abort = new AbortController();
    const ended = relay.run(abort.signal);
    await eventually(() => relay.progress.eventsSent >= 61, WAIT);
    abort.abort();
    await ended;
  }

  /** Runs the program of docs/kafka.md until it has printed `count` lines and reached the end of the topic. */
  async function printedByExample(count: number): Promise<readonly string[]> {
    const root = join(import.meta.dirname, '../../..');
    const page = await readFile(join(root, 'docs/kafka.md'), 'utf8');
    const [, program] = /```js\n([\s\S]*?)```/.exec(page) ?? [];
    if (program === undefined) throw new Error('docs/kafka.md has no program');
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      cwd: root,
      env: { ...process.env, KAFKA_BROKERS: broker.brokers.join(',') },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let output = '';
    child.stdout.on('data', (chunk) => (output += String(chunk)));
    const lines = (): string[] => output.split('\n').filter((line) => line.includes(' parley.'));
    try {
      await eventually(() => lines().length >= count, WAIT);
      await eventually(() => isAtTheEnd(), WAIT);
    } finally {
      child.kill('SIGKILL');
    }
    return lines();
  }

  async function isAtTheEnd(): Promise<boolean> {
    return kafka.withAdmin(async (admin) => {
      const [saved] = await admin.fetchOffsets({ groupId: 'my-team', topics: [topics.events] });
      const ends = await admin.fetchTopicOffsets(topics.events);
      return ends.every(({ partition, high }) => {
        const offset = saved?.partitions.find((one) => one.partition === partition)?.offset;
        return high === '0' || offset === high;
      });
    });
  }
});
