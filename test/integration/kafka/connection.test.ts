/** `KafkaConnection` on a real broker. */
import { createRequire } from 'node:module';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { newId } from '#libs/kernel/ids.ts';
import { KafkaConnection } from '#libs/platform/kafka/index.ts';
import { silentLog } from '#libs/platform/lifecycle/index.ts';
import { freePort } from '#infra/private-redis/free-port.ts';
import { KAFKA_START_MS, startTestKafka, type TestKafka } from '#test/support/kafka/broker.ts';
import { plainKafka } from '#test/support/kafka/plain-kafka.ts';
import { readTopic } from '#test/support/kafka/topic-reader.ts';

let broker: TestKafka;
let kafka: KafkaConnection;
let topic: string;

beforeAll(async () => {
  broker = await startTestKafka();
}, KAFKA_START_MS);
afterAll(() => broker.stop());

beforeEach(() => {
  kafka = new KafkaConnection({ brokers: broker.brokers, log: silentLog });
  topic = `test-${newId()}`;
});
afterEach(() => kafka.close());

describe('connection to Kafka', () => {
  it('creates a missing topic, and leaves an existing one unchanged', async () => {
    await kafka.ensureTopics([{ topic, partitions: 3 }]);
    await kafka.ensureTopics([{ topic, partitions: 5 }]);
    const { topics } = await kafka.withAdmin((admin) => admin.fetchTopicMetadata({ topics: [topic] }));
    expect(topics[0]?.partitions).toHaveLength(3);
  });

  it('resolves when the topics exist, also while other clients create the same and other topics', async () => {
    const specs = Array.from({ length: 8 }, (_, n) => ({ topic: `${topic}-${n % 4}`, partitions: 12 }));
    await Promise.all(
      specs.map(async (spec) => {
        await kafka.ensureTopics([spec, { ...spec, topic: `${spec.topic}-more` }]);
        const { topics } = await kafka.withAdmin((admin) => admin.fetchTopicMetadata({ topics: [spec.topic] }));
        expect(topics.map(({ partitions }) => partitions.length)).toEqual([12]);
      }),
    );
  });

  // While one of them has no leader, kafkajs would fail.
  it('asks for no topics of others where it needs the brokers alone', async () => {
    await kafka.ensureTopics([{ topic, partitions: 1 }]);
    const { cluster, topics } = await kafka.withAdmin(async (admin) => ({
      cluster: await admin.describeCluster(),
      topics: await admin.listTopics(),
    }));
    expect(cluster.brokers.map(({ host, port }) => `${host}:${port}`)).toEqual(broker.brokers);
    expect(topics).toEqual([]);
  });

  it('leaves other clients in the process all topics', async () => {
    await kafka.ensureTopics([{ topic, partitions: 1 }]);
    const admin = plainKafka(broker.brokers).admin();
    await admin.connect();
    expect(await admin.listTopics().finally(() => admin.disconnect())).toContain(topic);
  });

  it('keeps the order of messages with one key across calls', async () => {
    await kafka.ensureTopics([{ topic, partitions: 3 }]);
    for (let n = 0; n < 20; n += 2) {
      await kafka.send(topic, [
        { key: 'a', value: `${n}` },
        { key: 'a', value: `${n + 1}` },
      ]);
    }
    const values = (await readTopic(broker.brokers, topic)).map(({ value }) => Number(value));
    expect(values).toEqual(Array.from({ length: 20 }, (_, n) => n));
  });

  // kafkajs would send the same bytes, at twice the cost.
  it('encodes messages itself', async () => {
    await kafka.ensureTopics([{ topic, partitions: 1 }]);
    const { prototype } = createRequire(import.meta.url)('kafkajs/src/protocol/encoder') as {
      prototype: { writeVarIntArray(headers: unknown): unknown };
    };
    // Called for each message.
    const headers = vi.spyOn(prototype, 'writeVarIntArray');
    try {
      await kafka.send(topic, [{ key: 'a', value: 'one', headers: { b: 'c' } }]);
      expect(headers).not.toHaveBeenCalled();
    } finally {
      headers.mockRestore();
    }
    expect(await readTopic(broker.brokers, topic)).toHaveLength(1);
  });

  it('rejects with the reason of the broker, and sends the next message', async () => {
    await kafka.ensureTopics([{ topic, partitions: 1, settings: { 'max.message.bytes': '1000' } }]);
    await expect(kafka.send(topic, [{ key: 'a', value: 'x'.repeat(2_000) }])).rejects.toThrow(/larger|too large/i);
    await kafka.send(topic, [{ key: 'a', value: 'short' }]);
    expect(await readTopic(broker.brokers, topic)).toHaveLength(1);
  });

  it('rejects with store_unavailable where no broker answers', async () => {
    const away = new KafkaConnection({ brokers: [`127.0.0.1:${await freePort()}`], log: silentLog });
    await expect(away.send(topic, [{ key: 'a', value: 'a' }])).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(away.ensureTopics([{ topic, partitions: 1 }])).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(away.committedMetadata('group', topic)).rejects.toMatchObject({ code: 'store_unavailable' });
    await away.close();
  });

  it('sends nothing once it is closed', async () => {
    await kafka.close();
    await expect(kafka.send(topic, [{ key: 'a', value: 'a' }])).rejects.toMatchObject({ code: 'stopping' });
  });

  it('sets no timer with a negative delay, about which Node warns', async () => {
    const warnings: string[] = [];
    const onWarning = ({ name }: Error): void => void warnings.push(name);
    process.on('warning', onWarning);
    await kafka.ensureTopics([{ topic, partitions: 1 }]);
    await kafka.send(topic, [{ key: 'a', value: 'a' }]);
    // Node emits warnings in the next iteration of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', onWarning);
    expect(warnings).not.toContain('TimeoutNegativeWarning');
  });
});
