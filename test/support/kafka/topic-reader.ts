/** Reads a topic through kafkajs itself and not through the code under test. */
import type { KafkaMessage } from 'kafkajs';
import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import type { LogMessages, MessagePlace } from '#libs/platform/kafka/index.ts';
import { newId } from '#libs/kernel/ids.ts';
import { eventually } from '../eventually.ts';
import { plainKafka } from './plain-kafka.ts';

/**
 * The events among the messages, in the order of each stream.
 * @throws Error for a message that Parley did not write
 */
export async function readEvents(
  brokers: readonly string[],
  topic: string,
  messages: LogMessages,
): Promise<readonly StoredEvent[]> {
  return (await readTopic(brokers, topic)).flatMap((message) => {
    const decoded = messages.decode(message, message);
    if (typeof decoded === 'string') throw new Error(`a ${decoded} message`);
    return 'watermark' in decoded ? [] : [decoded];
  });
}

export type TopicMessage = KafkaMessage & MessagePlace;

/** All messages that a topic holds now, in the order of each partition. */
export async function readTopic(brokers: readonly string[], topic: string): Promise<readonly TopicMessage[]> {
  const kafka = plainKafka(brokers);
  const admin = kafka.admin();
  await admin.connect();
  const ends = await admin.fetchTopicOffsets(topic).finally(() => admin.disconnect());
  const wanted = ends.reduce((sum, { low, high }) => sum + Number(high) - Number(low), 0);
  if (wanted === 0) return [];
  const consumer = kafka.consumer({ groupId: `reader-${newId()}`, maxWaitTimeInMs: 50 });
  // By offset, because a rebalance of the group restarts the read from the beginning.
  const found = new Map<string, TopicMessage>();
  try {
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachBatch: async ({ batch: { messages, partition } }) => {
        const place = { topic, partition, partitions: ends.length };
        for (const message of messages) found.set(`${partition}/${message.offset}`, { ...message, ...place });
      },
    });
    await eventually(() => found.size >= wanted, { timeoutMs: 30_000 });
  } finally {
    await consumer.disconnect();
  }
  return [...found.values()].toSorted((one, other) => Number(one.offset) - Number(other.offset));
}
