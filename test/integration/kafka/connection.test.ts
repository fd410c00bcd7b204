/** What the connection makes of kafkajs, on any broker. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newId } from '#libs/kernel/ids.ts';
import { KafkaConnection } from '#libs/platform/kafka/index.ts';
import { silentLog } from '#libs/platform/lifecycle/index.ts';
import { freePort } from '#infra/private-redis/free-port.ts';
import { KAFKA_START_MS, startTestKafka } from '#test/support/kafka/broker.ts';
import type { TestKafka } from '#test/support/kafka/broker.ts';
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
  it('makes a topic that is missing, and leaves one that is there as it is', async () => {
    await kafka.ensureTopics([{ topic, partitions: 3 }]);
    await kafka.ensureTopics([{ topic, partitions: 5 }]);
    const { topics } = await kafka.withAdmin((admin) => admin.fetchTopicMetadata({ topics: [topic] }));
    expect(topics[0]?.partitions).toHaveLength(3);
  });

  it('has made topics once it says so, also while others make the same and others', async () => {
    const specs = Array.from({ length: 8 }, (_, n) => ({ topic: `${topic}-${n % 4}`, partitions: 12 }));
    await Promise.all(
      specs.map(async (spec) => {
        await kafka.ensureTopics([spec, { ...spec, topic: `${spec.topic}-more` }]);
        const { topics } = await kafka.withAdmin((admin) => admin.fetchTopicMetadata({ topics: [spec.topic] }));
        expect(topics.map(({ partitions }) => partitions.length)).toEqual([12]);
      }),
    );
  });

  it('sends messages of a key in their order, call after call', async () => {
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

  it('says which message a broker does not take, and sends the next one', async () => {
    await kafka.ensureTopics([{ topic, partitions: 1, settings: { 'max.message.bytes': '1000' } }]);
    await expect(kafka.send(topic, [{ key: 'a', value: 'x'.repeat(2_000) }])).rejects.toThrow(/larger|too large/i);
    await kafka.send(topic, [{ key: 'a', value: 'short' }]);
    expect(await readTopic(broker.brokers, topic)).toHaveLength(1);
  });

  it('is a fault of the store where no broker answers', async () => {
    const away = new KafkaConnection({ brokers: [`127.0.0.1:${await freePort()}`], log: silentLog });
    await expect(away.send(topic, [{ key: 'a', value: 'a' }])).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(away.ensureTopics([{ topic, partitions: 1 }])).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(away.committedMetadata('group', topic)).rejects.toMatchObject({ code: 'store_unavailable' });
    await away.close();
  });

  it('sends nothing any more once it is closed', async () => {
    await kafka.close();
    await expect(kafka.send(topic, [{ key: 'a', value: 'a' }])).rejects.toMatchObject({ code: 'stopping' });
  });

  it('asks for no timer of a negative length, which Node warns of', async () => {
    const warnings: string[] = [];
    const hear = ({ name }: Error): void => void warnings.push(name);
    process.on('warning', hear);
    await kafka.ensureTopics([{ topic, partitions: 1 }]);
    await kafka.send(topic, [{ key: 'a', value: 'a' }]);
    // Warnings are told in the next turn of the loop.
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', hear);
    expect(warnings).not.toContain('TimeoutNegativeWarning');
  });
});
