/** A topic as it is, through kafkajs itself and not through what is tested. */
import { Kafka, logLevel } from 'kafkajs';
import type { KafkaMessage } from 'kafkajs';
import { newId } from '#libs/kernel/ids.ts';
import { eventually } from '../eventually.ts';

/** Every message that a topic holds now, in the order of each partition. */
export async function readTopic(brokers: readonly string[], topic: string): Promise<readonly KafkaMessage[]> {
  const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  const ends = await admin.fetchTopicOffsets(topic).finally(() => admin.disconnect());
  const wanted = ends.reduce((sum, { low, high }) => sum + Number(high) - Number(low), 0);
  if (wanted === 0) return [];
  const consumer = kafka.consumer({ groupId: `reader-${newId()}`, maxWaitTimeInMs: 50 });
  const found: KafkaMessage[] = [];
  try {
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await consumer.run({ autoCommit: false, eachBatch: async ({ batch }) => void found.push(...batch.messages) });
    await eventually(() => found.length >= wanted, { timeoutMs: 30_000 });
  } finally {
    await consumer.disconnect();
  }
  return found;
}
